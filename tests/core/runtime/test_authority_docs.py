"""Table of caller and called tool in docs/grants.md."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trusted import trusted_copy

from healkit import Config, Healkit
from healkit.commands.options import GRANTS
from healkit.commands.parsing import read_grants, split_words, unquote
from healkit.core.contracts.execution import Grants
from healkit.faces.notebook.magic_parsers import MagicParser

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SAFE-1")]

PAGE = Path(__file__).parents[3] / "docs" / "grants.md"
#: Rows whose restrictions are made by other means at each tier.
BY_TIER = ("reading", "writing", "packages")

CALLED = """
import importlib, resource, sys, time

def NAME(folder: str) -> dict:
    def tried(action, *arguments):
        try:
            action(*arguments)
            return "done"
        except (OSError, ImportError, AttributeError) as error:
            return "no"
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    found = {"cpu": resource.getrlimit(resource.RLIMIT_CPU)[0] - time.process_time()}
    found["memory"] = (resource.getrlimit(resource.RLIMIT_AS)[0] - used) / 2**20
    for name in ("", "a/", "b/"):
        found["read " + name] = tried(open, folder + "/" + name + "file")
        found["write " + name] = tried(open, folder + "/" + name + "new", "w")
    sys.modules["rfc3987_syntax"] = None  # where jsonschema finds it, its import takes seconds
    for name in ("jsonschema", "rpds", "sqlglot"):
        found[name] = tried(importlib.import_module, name)
    for name in ("tools", "last_error"):
        found[name] = tried(lambda: getattr(mcp.healkit, name)())
    found["host"] = hasattr(mcp, "host")
    return found
"""
CALLS = """
def NAME(folder: str) -> dict:
    return mcp.vault.CALLED(folder=folder)
"""


def table() -> Iterator[tuple[str, str, str, str]]:
    """Yield what a row is about, and its three sets of grants."""
    page = PAGE.read_text()
    about = ""
    for row in page[page.index("| what | its caller has") :].split("\n\n")[0].splitlines()[2:]:
        first, *grants = (cell.strip() for cell in row.strip("|").split(" | "))
        about = first.strip("| ") or about
        yield about, *(cell.strip(" `") for cell in grants)


ROWS = list(table())
TIERS = [
    pytest.param(tier, row, id=f"{tier}: {row[1]} calls {row[2]}")
    for tier in ("namespaces", "landlock")
    for row in ROWS
    if tier == "namespaces" or row[0] in BY_TIER
]


def grants_of(cell: str, data: Path) -> dict[str, Any]:
    """Read a cell as the command line reads flags."""
    parser = MagicParser("grants", "")
    parser.take(*GRANTS)
    words = [unquote(word) for word in split_words(cell)] if cell != "none" else []
    words = [re.sub(r"^data", str(data), word) for word in words]
    return read_grants(vars(parser.parse_args(words)))


@pytest.fixture(scope="module")
def healkit_of(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> Iterator[Callable[[Any], Healkit]]:
    """Return the Healkit of a tier: the rows share its fork servers, of which they have many in common."""
    with contextlib.ExitStack() as opened:

        @functools.cache
        def of(tier: Any) -> Healkit:
            path = trusted_copy(empty_database, tmp_path_factory.mktemp(tier) / "healkit.db")
            config = Config(isolation=tier, start_timeout_s=60, rpc_timeout_s=60, timeout_s=90)
            healkit = opened.enter_context(Healkit(path, config=config))
            healkit.provide(lambda: 1, "one")
            return healkit

        yield of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder that the rows name, with what is in it."""
    made = tmp_path_factory.mktemp("authority") / "data"
    for folder in (made, made / "a", made / "b"):
        folder.mkdir()
        (folder / "file").touch()
    return made


@pytest.mark.parametrize(("tier", "row"), TIERS)
def test_a_called_tool_may_do_what_its_row_of_the_table_says(
    healkit_of: Callable[[Any], Healkit], data: Path, tier: Any, row: tuple[str, str, str, str]
) -> None:
    """S1: it could do all that it was granted itself, whoever called it."""
    healkit, number = healkit_of(tier), ROWS.index(row)
    calls, called, twin = (f"{name}_{number}" for name in ("calls", "called", "twin"))
    _, *cells = row
    of_caller, of_called = (grants_of(cell, data) for cell in cells[:2])
    healkit.vault.add(calls, CALLS.replace("NAME", calls).replace("CALLED", called), grants=of_caller)
    healkit.vault.add(called, CALLED.replace("NAME", called), grants=of_called)
    execution = healkit.execute(calls, arguments={"folder": str(data)})
    if cells[2].startswith("refused"):
        assert execution.failure is not None
        (call,) = healkit.log.calls(execution.trace_id)
        assert (call.server, call.success) == ("vault", False)
        assert call.tool in {called, "*"}  # it need not know which tools there are
        assert call.error_code == cells[2].split("`")[1]
        return
    assert execution.failure is None, execution.failure.traceback
    healkit.vault.add(twin, CALLED.replace("NAME", twin), grants=grants_of(cells[2], data))
    recorded = msgspec.convert(healkit.log.query(tool=called).rows[0].grants, Grants)
    wanted = healkit.vault.get(twin).grants
    cpu_s = [grants.cpu_s or healkit.config.cpu_s for grants in (recorded, wanted)]
    assert 0 <= cpu_s[1] - cpu_s[0] <= 5  # what the caller has used is gone
    assert msgspec.structs.replace(recorded, cpu_s=wanted.cpu_s) == wanted
    allowed = healkit.execute(twin, arguments={"folder": str(data)}).value
    for limit, spread in (("memory", 150), ("cpu", 6)):  # a thread alone takes 64 MiB of address space
        assert execution.value.pop(limit) == pytest.approx(allowed.pop(limit), abs=spread)
    assert execution.value == allowed

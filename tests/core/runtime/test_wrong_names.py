"""Names that are none, given to every getter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trusted import trusted_copy

from healkit import Healkit
from healkit.errors import DatabaseError, HealkitError, VaultError
from healkit.parts.runs.reader import read_run, validate_run
from healkit.parts.runs.run_folders import find_run

CODE = "def half(n: int):\n    return 1 / n\n"
FRAME = pd.DataFrame({"region": ["north"]})
#: What is passed where a name belongs: nothing, what holds the name, and what was meant as something else.
NO_NAMES = (None, 3, 3.5, True, b"half", ["half"], {"name": "half"}, object(), FRAME)


@pytest.fixture(scope="module")
def hk(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Healkit]:
    """Lend a Healkit with one tool and one view."""
    with Healkit(trusted_copy(empty_database, tmp_path_factory.mktemp("names") / "healkit.db")) as healkit:
        healkit.vault.add("half", CODE)
        healkit.views.put(FRAME, "sales")
        yield healkit


GETTERS: dict[str, Callable[[Healkit, Any], Any]] = {
    "views.get": lambda hk, name: hk.views.get(name),
    "views.load": lambda hk, name: hk.views.load(name),
    "views.card": lambda hk, name: hk.views.card(name),
    "views.to_pandas": lambda hk, name: hk.views.to_pandas(name),
    "views.remove": lambda hk, name: hk.views.remove(name),
    "views.export": lambda hk, name: hk.views.export(name, "out.csv"),
    "vault.get": lambda hk, name: hk.vault.get(name),
    "vault.get, persona": lambda hk, name: hk.vault.get("half", name),
    "vault.get, revision": lambda hk, name: hk.vault.get("half", "default", [name]),
    "vault.lookup": lambda hk, name: hk.vault.lookup(name),
    "vault.history": lambda hk, name: hk.vault.history(name),
    "vault.diff": lambda hk, name: hk.vault.diff(name),
    "vault.blame": lambda hk, name: hk.vault.blame(name),
    "vault.code": lambda hk, name: hk.vault.code(name),
    "vault.callers": lambda hk, name: hk.vault.callers(name),
    "vault.add, name": lambda hk, name: hk.vault.add(name, CODE),
    "vault.add, code": lambda hk, code: hk.vault.add("other", code),
    "vault.patch, name": lambda hk, name: hk.vault.patch(name, CODE),
    "vault.patch, code": lambda hk, code: hk.vault.patch("half", code),
    "vault.revert": lambda hk, number: hk.vault.revert("half", [number]),
    "vault.rename": lambda hk, name: hk.vault.rename(name, "other"),
    "vault.remove": lambda hk, name: hk.vault.remove(name),
    "vault.restore": lambda hk, name: hk.vault.restore(name),
    "vault.set_grants": lambda hk, name: hk.vault.set_grants(name),
    "undo": lambda hk, name: hk.undo(name),
    "execute": lambda hk, name: hk.execute(name),
    "execute_tool": lambda hk, name: hk.execute_tool(name),
    "execute, timeout": lambda hk, limit: hk.execute("half", arguments={"n": 1}, timeout=[limit]),
    "heal": lambda hk, name: hk.heal(name),
    "heal_panel": lambda hk, name: hk.heal_panel(name),
    "patch_editor": lambda hk, name: hk.patch_editor(name),
    "timeline": lambda hk, run: hk.timeline(run),
    "audit_panel": lambda hk, of: hk.audit_panel(of),
    "audit.get": lambda hk, execution: hk.audit.get(execution),
    "audit.summary": lambda hk, execution: hk.audit.summary([execution]),
    "requests.get": lambda hk, number: hk.requests.get([number]),
    "requests.accept": lambda hk, number: hk.requests.accept([number]),
    "execution": lambda hk, row: hk.execution([row]),
    "rerun": lambda hk, row: hk.rerun([row]),
    "log.groups": lambda hk, tool: hk.log.groups(tool=[tool]),
    "log.count": lambda hk, status: hk.log.count(status=[status]),
    "executions, tool": lambda hk, tool: hk.executions(tool=[tool]),
    "executions, since": lambda hk, since: hk.executions(since=[since]),
    "executions, limit": lambda hk, limit: hk.executions(limit=[limit]),
    "log.query, limit": lambda hk, limit: hk.log.query(tool="half", limit=[limit]),
    "views.list": lambda hk, limit: hk.views.list([limit]),
    "last_error": lambda hk, tool: hk.last_error([tool]),
    "last_error_report": lambda hk, tool: hk.last_error_report([tool]),
    "plot": lambda hk, tool: hk.plot([tool]),
    "disconnect": lambda hk, server: hk.disconnect(server),
    "find_run": lambda hk, run: find_run(hk.runs_dir, run),
    "read_run": lambda hk, run: read_run([run]),
    "validate_run": lambda hk, run: validate_run([run]),
}


@pytest.mark.requirement("FACE-6")
@pytest.mark.parametrize("getter", GETTERS.values(), ids=GETTERS)
def test_a_wrong_name_raises_an_error_of_healkit(hk: Healkit, getter: Callable[[Healkit, Any], Any]) -> None:
    """D7: `hk.views.get(None)` ended in AttributeError (`casefold`), and many others did."""
    for given in NO_NAMES:
        with pytest.raises(HealkitError) as caught:
            getter(hk, given)
        assert not isinstance(caught.value, DatabaseError), caught.value
        assert "\n" not in str(caught.value), "a frame is not printed in a sentence"


def test_the_error_for_a_function_in_place_of_code_names_getsource(hk: Healkit) -> None:
    def double(n: int) -> int:
        return 2 * n

    with pytest.raises(VaultError, match=r"code is text, not a function\. Of a function, inspect\.getsource"):
        hk.vault.add("double", double)  # type: ignore[arg-type]  # on purpose

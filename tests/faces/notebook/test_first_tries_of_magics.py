"""First tries of every magic, and what they say to type."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trusted import trusted_copy
from typed_lines import PARSER, typed_in

from healkit import Healkit
from healkit.faces.notebook.magic_parsers import HEALKIT_COMMANDS, PARSERS, VAULT_COMMANDS

RATIO = "def ratio(wins: int, games: int) -> float:\n    return round(wins / games, 2)\n"
TOTAL = "def total(df):\n    return int(df['revenue'].sum())\n"
#: A command of a terminal in a notebook.
TERMINAL = re.compile(
    r"(?<![%!/\w.])healkit (?:run|vault|log|errors|heal|decide|views|requests|trace|audit|seed|status|doctor)\b"
)
PLACEHOLDERS = {
    "NAME": "ratio", "TOOL": "ratio", "OLD": "ratio", "NEW": "share", "REVISION": "1", "ID": "1", "key=value …": "wins=1 games=1",
    "PERSONA": "teacher", "sales=frame": "sales=df",
}  # fmt: skip
#: The magic → its shortest sensible lines, with what it needs.
LINES = {
    "tool": ("share\ndef share(a: int): return a",),
    "run_tool": ("ratio wins=3 games=2", "total df=df", "ratio --args {'wins': 1}"),
    "trace_last_error": ("ratio",),
    "post_mortem": ("ratio",),
    "heal": ("ratio --with rules --later",),
    "vault": tuple(
        " ".join([command, *re.sub(r"\[.*", "", what.partition(":")[0]).split()]) if least else command
        for command, (least, _, what) in VAULT_COMMANDS.items()
    ),
    "executions": ("--status failed", "--group", "--summary"),
    "summarize": ("df", "df['revenue']"),
    "decide": (
        '"Which region sold most?" sales=df',
        '"Which region sold most?" sales=df --tools total --chooser person',
    ),
    "views": ("sales",),
    "graph": ("", "TOOL"),
    "suggest": ("", '"the ratio of wins"', '"a total" --after TOOL --limit 2'),
    "healkit": (*(name for name in HEALKIT_COMMANDS if name != "doctor"), "requests list", "requests show 1"),
}
WRONG = ("--nonsense", "nonsense", "nonsense nonsense nonsense", "'never closed")


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """Make a folder in which there is one of everything."""
    folder = tmp_path_factory.mktemp("seeded")
    trusted_copy(empty_database, folder / "healkit.db")
    with Healkit(folder / "healkit.db") as healkit:
        healkit.vault.add("ratio", RATIO, examples=[{"arguments": {"wins": 3, "games": 0}, "result": 0.0}])
        healkit.vault.add("total", TOTAL)
        healkit.execute("ratio", arguments={"wins": 3, "games": 0})
        healkit.heal("ratio", advisors=["rules"])
        healkit.views.put(pd.DataFrame({"region": ["north"], "revenue": [3]}), "sales")
    return folder


@pytest.fixture(params=["where there is nothing", "where there is something"])
def notebook(
    request: pytest.FixtureRequest,
    shell: Any,
    database: Path,
    seeded: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Any]:
    """Load healkit in a shell with a frame, on an empty database or on a copy of the seeded one."""
    if request.param == "where there is something":
        shutil.copytree(seeded, database.parent, dirs_exist_ok=True)
    shell.run_line_magic("load_ext", "healkit")
    shell.user_ns["df"] = pd.DataFrame({"region": ["north", "south"], "revenue": [3, 4]})
    capsys.readouterr()
    return shell


def typed(shell: Any, capsys: pytest.CaptureFixture[str], cell: str) -> tuple[BaseException | None, str]:
    """Type a cell; return what it raised, and all that stands below it."""
    done = shell.run_cell(cell)
    shown = capsys.readouterr()
    return done.error_in_exec or done.error_before_exec, shown.out + shown.err


def follow(shell: Any, capsys: pytest.CaptureFixture[str], cell: str, left: int = 2) -> None:
    """Type a cell, then what its sentence says; fail unless that leads to one that works."""
    error, told = typed(shell, capsys, cell)
    told = f"{cell}\n{told}"
    if found := PARSER.search(told.replace("Traceback (most recent call last)", "")) or TERMINAL.search(told):
        pytest.fail(f"{found[0]!r} in:\n{told}")
    if error is None or type(error).__name__ == "ToolExecutionError":
        return None
    said = [step for step in next_cells(told, cell) if step != cell]
    if not said:
        pytest.fail(f"nothing to type:\n{told}")
    if not left:
        pytest.fail(f"two steps lead nowhere:\n{told}")
    problems = []
    for step in said:
        try:
            return follow(shell, capsys, step, left - 1)
        except pytest.fail.Exception as problem:
            problems.append(str(problem))
    return pytest.fail(f"{told}\nthen\n{problems[0]}")


def next_cells(told: str, cell: str) -> list[str]:
    """Return the magics that the sentence says, and the cell again with the word that it meant."""
    found = []
    for line in typed_in(told.split("\n", cell.count("\n") + 1)[-1], "%", PLACEHOLDERS):
        if line.startswith("%%tool"):
            found.append(f"{line}\n{RATIO}")
        elif not line.startswith("%%"):
            found.append(line)
    for wrong, right in re.findall(r"'([^']*)'[^']*\. Did you mean '([^']*)'", told):
        found.append(cell.replace(wrong, right))
    return found


@pytest.mark.slow
@pytest.mark.requirement("FACE-2")
@pytest.mark.parametrize("magic", PARSERS)
def test_a_magic_alone_works_or_says_what_to_type(
    notebook: Any, capsys: pytest.CaptureFixture[str], magic: str
) -> None:
    """`%vault` alone said "the following arguments are required: command, NAME"."""
    follow(notebook, capsys, f"%%{magic}\n" if magic == "tool" else f"%{magic}")


@pytest.mark.slow
@pytest.mark.requirement("FACE-2")
@pytest.mark.parametrize("magic", PARSERS)
def test_a_magic_with_what_it_needs_works_or_says_what_to_type(
    notebook: Any, capsys: pytest.CaptureFixture[str], magic: str
) -> None:
    for line in LINES[magic]:
        for placeholder, value in PLACEHOLDERS.items():
            line = re.sub(rf"\b{placeholder}\b", value, line)
        follow(notebook, capsys, f"%%{magic} {line}" if magic == "tool" else f"%{magic} {line}")


@pytest.mark.slow
@pytest.mark.requirement("FACE-2")
@pytest.mark.parametrize("magic", PARSERS)
@pytest.mark.parametrize("notebook", ["where there is something"], indirect=True)
def test_a_magic_that_is_typed_wrongly_says_what_to_type(
    notebook: Any, capsys: pytest.CaptureFixture[str], magic: str
) -> None:
    for words in WRONG:
        follow(notebook, capsys, f"%%{magic} {words}\n{RATIO}" if magic == "tool" else f"%{magic} {words}")


@pytest.mark.slow
@pytest.mark.requirement("FACE-2")
@pytest.mark.parametrize("command", VAULT_COMMANDS)
def test_a_subcommand_of_the_vault_alone_works_or_says_what_to_type(
    notebook: Any, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    follow(notebook, capsys, f"%vault {command}")

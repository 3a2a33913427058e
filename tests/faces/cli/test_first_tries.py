"""First tries of every command, and what they say to type.

The commands are read off the command line itself, so a new one is tried as well. Each is typed in its shortest sensible
forms, where there is nothing yet and where there is something, and what its sentence says is typed after it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import typer
from cli_samples import Done, call
from tiers import slow_but
from trusted import trusted_copy
from typed_lines import PARSER, PYTHON, split, typed_in

from healkit import Healkit
from healkit.faces.cli import command_line

#: Commands that do not end, or take a minute; their own tests start them (test_cli_commands, test_collector_alone,
#: test_gallery_demo, test_agents_docs). Here they are only typed wrongly.
ELSEWHERE = {"lab", "page", "docs", "collect", "demo", "mcp"}
RATIO = "def ratio(wins: int, games: int) -> float:\n    return round(wins / games, 2)\n"
#: The command → what its placeholders stand for, where it is another thing than elsewhere.
PLACEHOLDERS = {
    "TOOL": "ratio", "OLD": "ratio", "NEW": "share", "TO": "1", "ID": "1", "RUN": "last", "ROW": "1", "FILE": "sales.csv",
    "EXECUTION": "last", "QUESTION": "'Which region sold most?'", "NAME": "ratio", "PERSONA": "teacher", "SUBCOMMAND": "list",
    "NAME=VALUE": "wins=1", "VALUE": "1", "NOTEBOOK": "book.ipynb",
}  # fmt: skip
MORE_PLACEHOLDERS = {
    "vault add": {"FILE": "ratio.py"},
    "vault patch": {"FILE": "ratio.py"},
    "views": {"NAME": "sales", "FILE": "out.csv"},
    "log export": {"FILE": "out.jsonl"},
    "log import": {"FILE": "log.jsonl"},
    "log replay": {"ROW_OR_FILE": "5"},
    "decide": {"NAME": "sales"},
}
#: Options that make the shortest form whole.
OPTIONS = {"decide": ["--data", "sales=sales.csv", "--tools", "ratio", "--plan", "plan.json"]}
#: Commands that the quick tier types too.
QUICK = ("run", "decide", "log", "log show", "vault", "vault rename", "trace", "audit", "kernelspec remove")
#: 1 is how they say that a tool failed, that a patch waits, that two runs differ.
MAY_END_IN_1 = ("run", "map", "heal", "decide", "trace", "audit verify", "doctor")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command and group, with the placeholders of the arguments that it needs."""

    def walk(command: typer.core.TyperCommand, path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
        if path:
            needed = [p for p in command.params if p.param_type_name == "argument" and p.required]
            yield " ".join(path), [(p.metavar or p.name).partition("|")[0].upper() for p in needed]
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, (*path, name))

    yield from walk(typer.main.get_command(command_line()), ())


COMMANDS = dict(commands())


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """Make a folder in which there is one of everything: a tool, a failed run, a request, a view, an audit."""
    folder = tmp_path_factory.mktemp("seeded")
    trusted_copy(empty_database, folder / "healkit.db")
    with Healkit(folder / "healkit.db") as healkit:
        healkit.vault.add("ratio", RATIO, examples=[{"arguments": {"wins": 3, "games": 0}, "result": 0.0}])
        healkit.execute("ratio", arguments={"wins": 3, "games": 0}, record=True)
        healkit.heal("ratio", advisors=["rules"])
        healkit.views.put(pd.DataFrame({"region": ["north"], "revenue": [3]}), "sales")
        healkit.log.export(folder / "log.jsonl")
    return folder


@pytest.fixture(params=["where there is nothing", "where there is something"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, seeded: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make a folder of the test's own, empty or a copy of the seeded one, and go there."""
    folder = tmp_path / "place"
    if request.param == "where there is nothing":
        folder.mkdir()
    else:
        shutil.copytree(seeded, folder)
    for name, text in (
        ("ratio.py", RATIO),
        ("sales.csv", "region,revenue\nnorth,3\n"),
        ("book.ipynb", '{"nbformat": 4, "metadata": {}, "cells": []}'),
        ("plan.json", '[{"type": "finalize", "finalViewName": "sales"}]'),
    ):
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))  # where `setup` writes
    monkeypatch.setenv("HEALKIT_DB", str(folder / "healkit.db"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "environment"))  # where `kernelspec install` writes
    return folder


def filled(path: str, needed: list[str]) -> list[str]:
    """Return the arguments that the command needs."""
    own = next((known for start, known in MORE_PLACEHOLDERS.items() if path.startswith(start)), {})
    return [split(f"x {({**PLACEHOLDERS, **own})[word]}")[0] for word in needed]


def follow(words: list[str], left: int = 2) -> None:
    """Type a command, then what its sentence says; fail unless that leads to one that works."""
    done = call(*words)
    line = f"healkit {' '.join(words)}"
    told = f"{line}\n{done.stdout}{done.stderr}"
    for never in (PARSER, PYTHON):
        if found := never.search(done.stderr):
            pytest.fail(f"{found[0]!r} in:\n{told}")
    if works(words, done):
        assert done.stdout or done.stderr, told
        return None
    said = next_steps(words, done)
    if not said:
        pytest.fail(f"nothing to type:\n{told}")
    if not left:
        pytest.fail(f"two steps lead nowhere:\n{told}")
    problems = []
    for step in said:
        try:
            return None if step[0] in ELSEWHERE and "--help" not in step else follow(step, left - 1)
        except pytest.fail.Exception as problem:
            problems.append(str(problem))
    return pytest.fail(f"{told}\nthen\n{problems[0]}")


def works(words: list[str], done: Done) -> bool:
    """Tell if the command did what it is for."""
    return done.returncode == 0 or (
        done.returncode == 1 and " ".join(words).startswith(MAY_END_IN_1) and bool(done.stdout + done.stderr)
    )


def next_steps(words: list[str], done: Done) -> list[list[str]]:
    """Return the commands that the sentence says, with what there is for each placeholder."""
    found = []
    for line in sorted(typed_in(done.stderr, "healkit "), key=lambda line: line.split()[1] in ELSEWHERE):
        path = next(
            (p for p in sorted(COMMANDS, key=len, reverse=True) if line.startswith(f"healkit {p}")), ""
        )
        own = next((known for start, known in MORE_PLACEHOLDERS.items() if path.startswith(start)), {})
        known = {"NAME=FILE": "sales=sales.csv", **PLACEHOLDERS, **own}
        found.append(split(typed_in(line, "healkit ", known)[0]))
    for wrong, right in re.findall(r"'([^']*)'[^']*\. Did you mean '([^']*)'", done.stderr):
        found.append([right if word == wrong else word for word in words])
    return found


TRIED = [path for path in COMMANDS if path not in ELSEWHERE]


@pytest.mark.requirement("FACE-6")
@pytest.mark.parametrize("path", slow_but({path: path for path in TRIED}, QUICK))
def test_a_command_alone_works_or_says_what_to_type(place: Path, path: str) -> None:
    follow(path.split())


@pytest.mark.slow
@pytest.mark.requirement("FACE-6")
@pytest.mark.parametrize("path", [path for path in TRIED if COMMANDS[path] or path in OPTIONS])
def test_a_command_with_what_it_needs_works_or_says_what_to_type(place: Path, path: str) -> None:
    follow([*path.split(), *filled(path, COMMANDS[path]), *OPTIONS.get(path, [])])


@pytest.mark.slow
@pytest.mark.requirement("FACE-6")
@pytest.mark.parametrize(
    "path", [path for path in COMMANDS if path != "lab"]
)  # whose other words are JupyterLab's
@pytest.mark.parametrize("place", ["where there is something"], indirect=True)
def test_a_command_that_is_typed_wrongly_says_what_to_type(place: Path, path: str) -> None:
    needed = COMMANDS[path]
    follow([*path.split(), "--nonsense"])
    follow([*path.split(), *filled(path, needed), "nonsense"])
    if needed:
        follow([*path.split(), *["nonsense"] * len(needed)])

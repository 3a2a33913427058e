"""Notebooks of failing cells, and their kernels.

A notebook is a file of `notebooks/`: its cells, top to bottom, and the files beside it. A cell with `fails` is a case:
it raises that error, and its right fix was written beforehand: the new text (`fix`) of that cell, or of the cell that
it names (`of`), or the cells to run first (`rerun`), or `none` where no change of the code can be right. `check` is an
expression that is true only where the result is right; `_` is the cell's value there, and `printed` what it printed.
So a fix of another text counts too. A cell with `later` is not run in its turn, one with `times` so often. `split.toml`
says which cases are for building on, and which are only counted.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from jupyter_client.manager import start_new_kernel

HERE = Path(__file__).parent
LOAD = "%load_ext healkit"
#: How long a cell may take.
TIMEOUT_S = 120


#: The report on the newest failing cell as data, and as it is shown; run where no name of the notebook's is.
ASK = """
import dataclasses, json
from healkit.faces.defaults import default_healkit
told = default_healkit().heal_cell(advisors=ADVISORS)
data = {f.name: getattr(told, f.name) for f in dataclasses.fields(told) if f.name != "report"}
plain = lambda value: {**dataclasses.asdict(value), "said": getattr(value, "said", "")}
print("\\n@@" + json.dumps({**data, "shown": str(told)}, default=plain))
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """Failing cell of a notebook.

    edits: the right new text of cells, by name. rerun: names of cells to run first. none: there is no fix.
    """

    name: str
    kind: str
    cell: str
    error: str
    check: str
    edits: Mapping[str, str]
    rerun: tuple[str, ...]
    none: bool
    seen: bool


@dataclasses.dataclass(frozen=True)
class Book:
    """Notebook. cells: the text of each cell by its name, as they stand; turns: the cells in the order they are run."""

    name: str
    cells: Mapping[str, str]
    turns: tuple[str, ...]
    cases: Mapping[str, Case]
    files: Mapping[str, str]

    def write(self, folder: Path) -> Path:
        """Write the notebook and its files into a folder; return its path."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        sources = [LOAD, *self.cells.values()]
        cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources)]
        path = folder / f"{self.name}.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path


def books() -> list[Book]:
    """Read all notebooks."""
    split = tomllib.loads((HERE / "split.toml").read_text(encoding="utf-8"))
    return [_book(path, set(split["unseen"])) for path in sorted((HERE / "notebooks").glob("*.toml"))]


def _book(path: Path, unseen: set[str]) -> Book:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in data["cell"]}
    assert len(rows) == len(data["cell"]), f"{path.name}: two cells have the same name"
    cases = {}
    for name, row in rows.items():
        if "fails" not in row:
            continue
        full = f"{path.stem}/{name}"
        edits = {row.get("of", name): row["fix"].strip("\n")} if "fix" in row else {}
        cases[name] = Case(
            full,
            row["kind"],
            name,
            row["fails"],
            row.get("check", "True"),
            edits,
            tuple(row.get("rerun", ())),
            row.get("none", False),
            full not in unseen,
        )
    turns = tuple(
        name for name, row in rows.items() for _ in range(row.get("times", 1)) if not row.get("later")
    )
    files = {name: text.lstrip("\n") for name, text in data.get("files", {}).items()}
    cells = {name: row["code"].strip("\n") for name, row in rows.items()}
    return Book(path.stem, cells, turns, cases, files)


class Run(NamedTuple):
    """Run of a cell. shown: the texts of what it displays. pages: the same as HTML."""

    count: int
    error: str
    printed: str
    shown: tuple[str, ...]
    seconds: float


class Kernel:
    """Kernel in a folder, told of its notebook as Jupyter Server tells it."""

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        env = {
            **os.environ,
            "IPYTHONDIR": str(folder / ".ipython"),
            "HEALKIT_DB": str(folder / ".healkit.db"),
        }
        if path is not None:
            env["JPY_SESSION_NAME"] = str(path)
        self.manager, self.client = start_new_kernel(
            startup_timeout=120, cwd=str(folder), env=env, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(
        self,
        code: str,
        cell_id: str = "",
        *,
        history: bool = True,
        expressions: Mapping[str, str] | None = None,
    ) -> Run:
        """Run a cell, and wait for all that it gives. expressions: their values take the place of what is shown."""
        content = {
            "code": code,
            "silent": False,
            "store_history": history,
            "allow_stdin": False,
            "stop_on_error": False,
            "user_expressions": dict(expressions or {}),
        }
        message = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell_id} if cell_id else {}
        )
        began = time.perf_counter()
        self.client.shell_channel.send(message)
        asked = message["header"]["msg_id"]
        printed, shown = "", []
        while True:
            said = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            if said["parent_header"].get("msg_id") != asked:
                continue
            kind, body = said["msg_type"], said["content"]
            if kind == "status" and body["execution_state"] == "idle":
                break
            if kind == "stream" and body["name"] == "stdout":
                printed += body["text"]
            elif kind in ("display_data", "execute_result"):
                shown.append(body["data"].get("text/plain", ""))
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == asked:
                break
        spent, body = time.perf_counter() - began, reply["content"]
        if expressions:
            values = body.get("user_expressions", {}).values()
            shown = [
                value.get("data", {}).get("text/plain", f"{value.get('ename')}: {value.get('evalue')}")
                for value in values
            ]
        return Run(body["execution_count"], body.get("ename", ""), printed, tuple(shown), spent)

    def ask(self, advisors: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the report on the newest failing cell, with the `seconds` that it took."""
        code = ASK.replace("ADVISORS", repr(advisors))
        asked = self.run(f"exec({code!r}, {{}})", history=False)
        if asked.error:
            failed = {
                "outcome": f"raises {asked.error}",
                "found": "",
                "reason": "",
                "fix": None,
                "others": [],
                "notes": [],
            }
            return {**failed, "cells": [], "shown": "", "seconds": asked.seconds}
        return {**json.loads(asked.printed.rpartition("@@")[2]), "seconds": round(asked.seconds, 2)}


#: Parts of a card that say something of their own, as its text has them.
_WORDS = re.compile(r"(?ms)^  (what|why|hint|fix|code) +(.*?)(?=^  \S|\Z)")


def card_words(shown: str) -> dict[str, str]:
    """Return what a card says, part by part. code: with its lines; a `fix` that is nothing but code is `code`."""
    found = {name: textwrap.dedent(f"{' ' * 13}{text.rstrip()}") for name, text in _WORDS.findall(shown)}
    if "code" not in found and "fix" in found:
        with contextlib.suppress(SyntaxError):
            ast.parse(found["fix"])
            found["code"] = found.pop("fix")
    return {name: text if name == "code" else " ".join(text.split()) for name, text in found.items()}


@contextlib.contextmanager
def kernel_of(book: Book) -> Iterator[Kernel]:
    """A kernel of its own for a notebook, in a folder with its files."""
    folder = Path(tempfile.mkdtemp())
    try:
        with Kernel(folder, book.write(folder)) as kernel:
            yield kernel
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cures(
    book: Book, case: Case, past: Sequence[str], edits: Mapping[str, str], rerun: Sequence[str] = ()
) -> str:
    """Follow a fix in a kernel without healkit; return what is wrong with the result, empty where it is right.

    past: the texts that were run until then, the failing cell's own run included. edits: new texts of cells by their
    names. rerun: names of the cells to be run first.
    """
    with kernel_of(book) as kernel:
        for text in past:
            kernel.run(text)
        for name in rerun:
            kernel.run(edits.get(name, book.cells[name]))
        for name in edits:
            if name != case.cell and name not in rerun:
                kernel.run(edits[name])
        done = kernel.run(edits.get(case.cell, book.cells[case.cell]))
        if done.error:
            return f"raises {done.error}"
        kernel.run(f"printed = {done.printed!r}", history=False)
        found = kernel.run("", history=False, expressions={"ok": f"bool({case.check})"}).shown
        return "" if found == ("True",) else f"the check gives {found[0]}"


class Walk:
    """Use of a notebook in one kernel, from the top, with each failing cell put right as it should be."""

    def __init__(self, book: Book, kernel: Kernel, *, load: bool) -> None:
        self.book, self.kernel = book, kernel
        self.past: list[str] = []
        self.names: dict[str, str] = {}
        if load:
            kernel.run(LOAD, "c0")
        self._numbers = {name: n for n, name in enumerate(book.cells, 1)}
        self.names |= {f"cell {n + 1}": name for name, n in self._numbers.items()}

    def run(self, name: str, text: str | None = None) -> Run:
        """Run a cell of the notebook, and take note of its prompt."""
        text = self.book.cells[name] if text is None else text
        done = self.kernel.run(text, f"c{self._numbers[name]}")
        self.past.append(text)
        self.names[f"In [{done.count}]"] = name
        return done

    def cases(self) -> Iterator[tuple[Case, Run]]:
        """Yield each case at the moment when its cell has failed; what is right is done before the next."""
        ran: set[str] = set()
        for turn, name in enumerate(self.book.turns):
            done = self.run(name)
            case = self.book.cases.get(name)
            if case is None or name in self.book.turns[turn + 1 :]:
                assert not done.error, f"{self.book.name}/{name} raises {done.error}"
                ran.add(name)
                continue
            assert case.error == done.error, f"{case.name} raises {done.error}, not {case.error}"
            yield case, done
            if not case.none:
                for step in case.rerun:
                    self.run(step)
                for edited, text in case.edits.items():
                    if edited != name:
                        self.run(edited, text)
                assert not self.run(name, case.edits.get(name)).error, f"{case.name} is not put right"


def validate(names: Sequence[str]) -> None:
    """Fail where a case does not raise what it says, or its own fix does not pass its own check."""
    for book in books():
        if names and book.name not in names:
            continue
        with kernel_of(book) as kernel:
            walk = Walk(book, kernel, load=False)
            for case, _ in walk.cases():
                if case.none:
                    continue
                wrong = cures(book, case, walk.past, case.edits, case.rerun)
                assert not wrong, f"{case.name}: {wrong}"
                print(case.name, "ok")


if __name__ == "__main__":
    validate(sys.argv[1:])

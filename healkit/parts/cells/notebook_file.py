"""Notebook files and the runs of their cells.

A kernel does not know which notebook it serves. Jupyter Server sets `JPY_SESSION_NAME` to the path that the notebook
had when the kernel started. VS Code sets `__vsc_ipynb_file__`, and papermill (with `--inject-paths`)
`PAPERMILL_INPUT_PATH`. A notebook may have been renamed since then, so a file counts only if it has a cell that ran in
this kernel. The file is not validated, because its cells are useful even if an output is faulty. A file that cannot be
read is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from healkit.errors import UsageInvalid

FILE_MAX_BYTES = 5_000_000
#: Names that IPython puts into a notebook's namespace.
GIVEN = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open", "display", "_", "__", "___"})
#: How many files of a folder are searched for a renamed notebook, newest first.
_SIBLINGS_MAX = 20


@dataclass(frozen=True)
class CellRun:
    """Run of a cell in this kernel.

    count: The number of its prompt.
    ok: None if it ran before healkit was loaded.
    at: When it ended, in seconds since the epoch.
    failed_line: The line of the cell that failed.
    missing: The name of a NameError.
    """

    source: str
    count: int | None = None
    ok: bool | None = True
    cell_id: str = ""
    at: float | None = None
    failed_line: int | None = None
    ename: str = ""
    missing: str = ""


@dataclass(frozen=True)
class NotebookCell:
    """Code cell of a file; `number` counts all cells from 1, `count` is the prompt that was saved with it.

    result: The saved text of its last expression's value; empty where it has none.
    """

    number: int
    source: str
    cell_id: str = ""
    count: int | None = None
    result: str = ""


@dataclass(frozen=True)
class NotebookFile:
    """Code cells of a notebook file as it was last saved (seconds since the epoch)."""

    cells: tuple[NotebookCell, ...]
    saved_at: float | None = None

    def from_run(self, run: CellRun) -> tuple[NotebookCell, ...]:
        """Return the cell that ran, and the cells below it; none if it is not in the file."""
        texts = [cell.source.strip() for cell in self.cells]
        places = [i for i, cell in enumerate(self.cells) if run.cell_id and cell.cell_id == run.cell_id]
        places = places or [i for i, text in enumerate(texts) if text == run.source.strip()]
        return self.cells[places[0] :] if len(places) == 1 else ()


def find_notebook(
    variables: Mapping[str, Any], environment: Mapping[str, str], runs: Sequence[CellRun]
) -> NotebookFile | None:
    """Return the file of the notebook whose cells ran here, or None; never raises.

    variables: The kernel's namespace.
    runs: Cells that ran in this kernel; the file must have one of them. Ids decide, also in a renamed file. Texts
        decide only if no file has the ids.
    """
    ids = {run.cell_id for run in runs if re.fullmatch(r"[\w-]{1,64}", run.cell_id)}  # editors have others
    texts = {run.source.strip() for run in runs if run.source.strip()}

    def common(found: NotebookFile) -> tuple[int, int]:
        cells = found.cells
        return sum(cell.cell_id in ids for cell in cells), sum(cell.source.strip() in texts for cell in cells)

    paths = list(_paths(variables, environment))
    notebooks = list(filter(None, map(read_notebook, paths)))
    sure = [notebook for notebook in notebooks if common(notebook)[0]]
    if not sure and ids:
        beside = filter(None, (read_notebook(sibling) for path in paths for sibling in _siblings(path)))
        sure = [notebook for notebook in beside if common(notebook)[0]]
    best = max(sure or notebooks, key=common, default=None)
    return best if best is not None and any(common(best)) else None


def read_notebook(path: Path) -> NotebookFile | None:
    """Return the code cells of an nbformat 4 file; None if it is missing, broken, in another format or too large."""
    try:
        status = path.stat()
        if status.st_size > FILE_MAX_BYTES or not path.is_file():
            return None
        with path.open("rb") as file:
            content = json.loads(file.read(FILE_MAX_BYTES + 1))
        cells = tuple(_cells(content["cells"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return NotebookFile(cells, status.st_mtime)


def _cells(cells: list[Any]) -> Iterator[NotebookCell]:
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] != "code":
            continue
        (text, count), cell_id = _text_and_count(cell), cell.get("id")
        yield NotebookCell(number, text, cell_id if isinstance(cell_id, str) else "", count, _result(cell))


def _text_and_count(cell: Mapping[str, Any]) -> tuple[str, int | None]:
    source, count = cell["source"], cell.get("execution_count")
    return source if isinstance(source, str) else "".join(source), count if isinstance(count, int) else None


def _result(cell: Mapping[str, Any]) -> str:
    """Return the text of the value that is saved with a cell."""
    for output in cell.get("outputs", ()):
        if output.get("output_type") == "execute_result":
            text = output.get("data", {}).get("text/plain", "")
            return text if isinstance(text, str) else "".join(text)
    return ""


def _paths(variables: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Path]:
    candidates = [
        variables.get("__vsc_ipynb_file__"),
        environment.get("JPY_SESSION_NAME"),
        variables.get("PAPERMILL_INPUT_PATH"),
    ]
    for text in candidates:
        if isinstance(text, str) and text:
            yield Path(text.removeprefix("RTC:"))


def _siblings(path: Path) -> list[Path]:
    """Return the other notebooks of that folder, the last saved one first."""
    try:
        dated_paths = [
            (sibling.stat().st_mtime, sibling) for sibling in path.parent.glob("*.ipynb") if sibling != path
        ]
    except OSError:
        return []
    return [sibling for _, sibling in sorted(dated_paths, reverse=True)[:_SIBLINGS_MAX]]


# The file as text: the places of cells, and edits
#
# A cell's new text replaces the old one, and no other byte of the file changes. The program that wrote the file has its
# own order of keys, indentation and escapes.


#: Tag of a cell that is meant to fail, as nbclient and nbconvert know it.
_MAY_FAIL = "raises-exception"
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class NotebookText:
    """File of a Python notebook, in nbformat 4.

    cells: Its code cells with a text. Their ids are healkit's, because older files have no ids.
    may_fail: The numbers of cells that are tagged as such.
    """

    def __init__(self, path: Path) -> None:
        """Read it; raise `UsageInvalid` for a file that is not a notebook."""
        self.cells: list[NotebookCell] = []
        self.may_fail: set[int] = set()
        self._places: dict[int, int] = {}
        try:
            self.text = path.read_bytes().decode()
            about = json.loads(self.text or "{}")
            language = _language(about.get("metadata", {}))
            if about["nbformat"] == 4 and language == "python":
                self._read_cells()
        except OSError as error:
            raise _refused(path, f"cannot be read: {(error.strerror or '').lower()}") from None
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
            raise _refused(path, "is not a notebook") from None
        if about["nbformat"] != 4:
            hint = "`jupyter nbconvert --to notebook --inplace` converts it."
            raise _refused(path, f"is in format {about['nbformat']!r} of notebooks, not 4", hint)
        if language != "python":
            raise _refused(path, f"is a notebook of {language!r}, but healkit only runs Python")

    def _read_cells(self) -> None:
        begin = _place_in(self.text, _after_space(self.text, 0), "cells")
        for number, (_, at, _) in enumerate(_parts(self.text, begin), 1):
            cell, _ = _decode(self.text, at)
            text, count = _text_and_count(cell)
            if cell["cell_type"] == "code" and text.strip():
                self.cells.append(NotebookCell(number, text, f"cell-{number}", count))
                self._places[number] = _place_in(self.text, at, "source")
                if _MAY_FAIL in cell["metadata"].get("tags", ()):
                    self.may_fail.add(number)

    def line_of(self, number: int, line: int) -> int:
        """Return the line of the file that a cell's line is in, both from 1."""
        place, now = self._places[number], 1
        for _, begin, _ in _parts(self.text, place) if self.text[place] == "[" else ():
            if now <= max(line, 1):
                place = begin
            now += _decode(self.text, begin)[0].count("\n")
        return self.text.count("\n", 0, place) + 1

    def edited(self, texts: Mapping[int, str]) -> str:
        """Return the file's text with new texts of cells, by number, each in the same form as the old one."""
        text, as_ascii = self.text, self.text.isascii()
        for number in sorted(texts, reverse=True):
            place = self._places[number]
            _, end = _decode(text, place)
            written = json.dumps(texts[number], ensure_ascii=as_ascii)
            if text[place] == "[":
                parts = [(first, last) for _, first, last in _parts(text, place)]
                before, after = text[place + 1 : parts[0][0]], text[parts[-1][1] : end - 1]
                between = text[parts[0][1] : parts[1][0]] if len(parts) > 1 else f",{before}"
                lines = texts[number].splitlines(keepends=True)
                listed = between.join(json.dumps(line, ensure_ascii=as_ascii) for line in lines)
                written = f"[{before}{listed}{after}]"
            text = text[:place] + written + text[end:]
        return text


def _language(metadata: Mapping[str, Any]) -> str:
    language = metadata.get("language_info", {}).get("name") or metadata.get("kernelspec", {}).get("language")
    return language.lower() if isinstance(language, str) else "python"


def _refused(path: Path, why: str, hint: str = "Notebooks are .ipynb files of JSON.") -> UsageInvalid:
    return UsageInvalid(f"{str(path)!r} {why}.", hint=hint)


def _place_in(text: str, at: int, wanted: str) -> int:
    """Return where a key's value begins, in the JSON object that begins at the position."""
    return next(begin for key, begin, _ in _parts(text, at) if key == wanted)


def _parts(text: str, at: int) -> Iterator[tuple[str | None, int, int]]:
    """Yield key, begin and end of each part of the JSON object or array that begins there; an array has no keys."""
    has_keys, key = text[at] == "{", None
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        if has_keys:
            key, at = _decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        _, end = _decode(text, at)
        yield key, at, end
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()

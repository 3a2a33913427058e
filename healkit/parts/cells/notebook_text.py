"""Notebook files as text: the places of cells, and edits.

A cell's new text is put in the place of its old one, and no other byte of the file changes: what wrote it has its own
order of keys, indentation and escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from healkit.errors import UsageInvalid
from healkit.parts.cells.notebook_file import NotebookCell

#: Tag of a cell that is meant to fail, as nbclient and nbconvert know it.
_MAY_FAIL = "raises-exception"
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class NotebookText:
    """File of a Python notebook, in nbformat 4.

    cells: its code cells with a text; their ids are ours, since older files have none. may_fail: the numbers of those
    that are tagged so.
    """

    def __init__(self, path: Path) -> None:
        """Read it; raise `UsageInvalid` for a file that is none."""
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
            raise _refused(path, f"is a notebook of {language!r}, and only Python is run")

    def _read_cells(self) -> None:
        begin = _place_in(self.text, _after_space(self.text, 0), "cells")
        for number, (_, at, _) in enumerate(_parts(self.text, begin), 1):
            cell, _ = _decode(self.text, at)
            source, count = cell["source"], cell.get("execution_count")
            text = source if isinstance(source, str) else "".join(source)
            if cell["cell_type"] == "code" and text.strip():
                count = count if isinstance(count, int) else None
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
        """Return the file's text with new texts of cells, by number, each in the form that the old one has."""
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


def _refused(path: Path, why: str, hint: str = "healkit check NOTEBOOK takes .ipynb files.") -> UsageInvalid:
    return UsageInvalid(f"{str(path)!r} {why}.", hint=hint)


def _place_in(text: str, at: int, wanted: str) -> int:
    """Return where a key's value begins, in the JSON object that begins there."""
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

"""Mistakes that programs plant in working cells.

`kinds` has them by name; they stand in `code_mistakes` and `data_mistakes`. Each is a function that yields the plants
of a working notebook: the notebook with one mistake in it, and what stood there. A plant that does not fail when it
runs is left out, so a kind may be generous. The right result of a repair is what the cell gave without the mistake. Two
plants differ: one with a `reference` of its own, and one that is `lost`. Nothing that is left says what was right in a
lost one, so any fix is an invention.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WORKING = Path(__file__).parent / "working"
Cells = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Working:
    """Notebook whose cells run, from the top, beside its files."""

    name: str
    library: str
    cells: Cells
    files: Mapping[str, str]

    @property
    def text(self) -> str:
        return "\n".join(self.cells)


@dataclasses.dataclass(frozen=True)
class Plant:
    """Working notebook with a mistake.

    cells: as they stand in it; turns: the places of those that are run, in order. place: of the cell with the mistake.
    wrong: what stands there; right: what stood there, each as short as it can be said. reference: cells whose result is
    right too, where that is not only the working notebook's. lost: there is no right fix.
    """

    kind: str
    of: Working
    cells: Cells
    turns: tuple[int, ...]
    files: Mapping[str, str]
    place: int
    wrong: str
    right: str
    reference: Cells | None = None
    lost: bool = False

    @property
    def name(self) -> str:
        mark = hashlib.sha256(repr((self.cells, self.turns, sorted(self.files.items()))).encode()).hexdigest()
        return f"{self.kind}/{self.of.name}/{mark[:8]}"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Kind of mistakes.

    plants: yields them. says: patterns, one of which a card that names the cause matches. never: pattern of a cause
    that it is not.
    """

    name: str
    plants: Callable[[Working, random.Random], Iterator[Plant]]
    says: tuple[str, ...]
    never: str


_KINDS: dict[str, Kind] = {}
Plants = Iterator[Plant]


def kind(*says: str, never: str = r"(?!)") -> Callable[[Callable[[Working, random.Random], Plants]], None]:
    """Add a kind. In its patterns `{right}` and `{wrong}` stand for the plant's own, as whole words."""

    def add(plants: Callable[[Working, random.Random], Plants]) -> None:
        _KINDS[plants.__name__] = Kind(plants.__name__, plants, says, never)

    return add


def kinds() -> dict[str, Kind]:
    """Return all kinds by their names."""
    for module in ("cells.code_mistakes", "cells.data_mistakes"):
        importlib.import_module(module)  # each adds its own
    return _KINDS


def half(name: str) -> str:
    """Return the half of a notebook or a kind: `written` (rows may be written against it) or `measured`."""
    return ("written", "measured")[hashlib.sha256(f"half {name}".encode()).digest()[0] & 1]


def working() -> list[Working]:
    """Read the working notebooks."""
    found = []
    for path in sorted(WORKING.glob("*.py")):
        parts = re.split(r"(?m)^# === (\w+): (\w+)\n", path.read_text(encoding="utf-8"))
        for name, library, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            titled = re.split(r"(?m)^# %%(.*)\n", text)
            blocks = [
                (title.strip(), body.strip("\n"))
                for title, body in zip(titled[1::2], titled[2::2], strict=True)
            ]
            files = {title: ast.literal_eval(body).lstrip("\n") for title, body in blocks if title}
            found.append(Working(name, library, tuple(body for title, body in blocks if not title), files))
    assert len({one.name for one in found}) == len(found)
    return found


def whole(words: str) -> str:
    """Return a pattern of words that stand alone, not within a longer word or a path."""
    first, last = r"(?<![\w/.])" if words[:1].isalnum() else "", r"(?!\w)" if words[-1:].isalnum() else ""
    return f"{first}{re.escape(words)}{last}"


# What the kinds are written with


def plant(
    of: Working,
    place: int,
    text: str | Cells,
    wrong: str,
    right: str,
    *,
    turns: Sequence[int] | None = None,
    files: Mapping[str, str] | None = None,
    reference: Cells | None = None,
    lost: bool = False,
) -> Plant:
    """Return a plant. text: the new text of the cell in that place, or all cells."""
    cells = text if isinstance(text, tuple) else (*of.cells[:place], text, *of.cells[place + 1 :])
    turns = tuple(range(len(cells)) if turns is None else turns)
    return Plant(
        "", of, cells, turns, of.files if files is None else files, place, wrong, right, reference, lost
    )


@functools.cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def nodes(of: Working, *types: type) -> Iterator[tuple[int, Any]]:
    """Yield the nodes of those types, with the places of their cells."""
    for place, text in enumerate(of.cells):
        for node in _nodes(text):
            if isinstance(node, types):
                yield place, node


def span(text: str, node: ast.AST) -> tuple[int, int]:
    """Return where a node stands in a text."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    first, last = (
        starts[line - 1] + column
        for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]  # every expression has a place
    )
    data = text.encode()
    return len(data[:first].decode()), len(data[:last].decode())


def source(of: Working, place: int, node: ast.AST) -> str:
    first, last = span(of.cells[place], node)
    return of.cells[place][first:last]


def put(of: Working, place: int, node: ast.AST, new: str) -> str:
    """Return the text of a cell with other text in the place of a node."""
    first, last = span(of.cells[place], node)
    return of.cells[place][:first] + new + of.cells[place][last:]


def swap(
    of: Working,
    place: int,
    node: ast.AST,
    new: str,
    right: str,
    *,
    wrong: str | None = None,
    lost: bool = False,
) -> Plant:
    """Return a plant with other text in the place of a node, which is what is wrong, where nothing else is said."""
    return plant(
        of, place, put(of, place, node, new), new.strip('"') if wrong is None else wrong, right, lost=lost
    )


def typo(word: str, chance: random.Random) -> str:
    """Misspell a word as a hand does: two letters swapped, one left out, one twice, one beside it."""
    letters = [i for i in range(1, len(word)) if word[i].isalpha()]
    if not letters:
        return word + "s"
    i = chance.choice(letters)
    ways = [
        word[:i] + word[i + 1 :],
        word[:i] + word[i] + word[i:],
        word[:i] + chance.choice("aeionrst") + word[i + 1 :],
    ]
    if i + 1 < len(word):
        ways += 2 * [word[:i] + word[i + 1] + word[i] + word[i + 2 :]]
    ways = [way for way in ways if way != word and len(way) > 1] or [word + word[-1]]
    return chance.choice(ways)


def renamed(text: str, old: str, new: str) -> str:
    """Rename a name in a cell, wherever it is read or bound."""
    found = [node for node in _nodes(text) if isinstance(node, ast.Name) and node.id == old]
    for node in sorted(found, key=lambda node: span(text, node), reverse=True):
        first, last = span(text, node)
        text = text[:first] + new + text[last:]
    return text


def bound_in(text: str) -> list[str]:
    """List the names that a cell assigns at its top level, or defines."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            found += [
                n.id
                for t in node.targets
                for n in ast.walk(t)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            ]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
    return list(dict.fromkeys(found))


def reads(text: str, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in _nodes(text))


def is_table(of: Working) -> bool:
    return of.library in ("pandas", "polars", "sklearn", "matplotlib", "seaborn")


_COLUMN_ARGS = (
    "by",
    "on",
    "left_on",
    "right_on",
    "columns",
    "index",
    "values",
    "subset",
    "id_vars",
    "value_vars",
    "x",
    "y",
)
_COLUMN_CALLS = (
    "groupby",
    "sort_values",
    "merge",
    "set_index",
    "group_by",
    "sort",
    "col",
    "drop",
    "pivot_table",
    "pivot",
)


def columns(of: Working) -> Iterator[tuple[int, ast.Constant]]:
    """Yield texts that name a column or a key where it is read."""
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            told: list[ast.AST] = [node.slice]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            told = [k.value for k in node.keywords if k.arg in _COLUMN_ARGS] if called != "DataFrame" else []
            told += node.args[:1] if called in _COLUMN_CALLS else []
        else:
            continue
        for one in told:
            parts = one.elts if isinstance(one, ast.List | ast.Tuple) else [one]
            yield from (
                (place, part)
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def quoted(text: str) -> str:
    return f'"{text}"'


def call_with(of: Working, place: int, node: ast.Call, args: Sequence[str]) -> str:
    """Return a cell's text with other arguments in a call."""
    return put(of, place, node, f"{source(of, place, node.func)}({', '.join(args)})")

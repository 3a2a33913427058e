"""Sentences about cells, one for each kind of advice."""

from __future__ import annotations

import re
from collections.abc import Sequence

from healkit.parts.cells.dataflow import Binding, InnerName, clearing_magic, dataflow_of
from healkit.parts.cells.notebook_file import CellRun
from healkit.parts.cells.notebook_state import Cell

_SHOWN_CELLS = 6


def todo(labels: Sequence[str]) -> str:
    """Return the next step: `Run cells 2 and 3, then this cell again.`, or an empty text."""
    if not labels:
        return ""
    numbers = [label.removeprefix("cell ") for label in labels]
    if len(labels) > 1 and all(number.isdecimal() for number in numbers):
        what = f"cells {_listed(numbers)}, in this order"
    else:
        what = _listed(labels)
    return f"Run {what}, then this cell again."


def move(labels: Sequence[str]) -> str:
    """Return what else to do with cells that are too far down; an empty text for none."""
    if not labels:
        return ""
    listed = _listed([label.removeprefix("cell ") for label in labels])
    return f"Move cell{'s' if len(labels) > 1 else ''} {listed} above this cell, so that Run All works too."


def not_run(name: str, where: str, *, later: bool) -> str:
    place = "defined further down, in" if later else "defined in"
    return f"`{name}` is {place} {where}, which has not been run since the kernel started."


def edited(name: str, where: str, older: CellRun) -> str:
    run = f" as In [{older.count}]" if older.count is not None else ""
    failed = " and failed" if older.ok is False else ""
    return f"`{name}` is defined in the current text of {where}. An earlier text of that cell was run{run}{failed}."


def failed(name: str, where: str, run: CellRun) -> str:
    if run.ename == "KeyboardInterrupt":
        return f"`{name}` is defined in {where}, which was interrupted before defining it."
    line = f" at line {run.failed_line}" if run.failed_line is not None else ""
    what = f" ({run.ename}{f': `{run.missing}` was missing' if run.missing else ''})" if run.ename else ""
    return f"`{name}` is defined in {where}, which failed{line}{what} before defining it."


def unwatched(name: str, where: str) -> str:
    return (
        f"`{name}` is defined in {where}. That cell ran before healkit was loaded and left no `{name}`: it failed, or "
        "the name was deleted since."
    )


def removed(name: str, where: str, by: str) -> str:
    return f"`{name}` was defined in {where} and {f'deleted by {by}' if by else 'no longer exists'}."


def removal(history: Sequence[CellRun], name: str) -> str:
    """Return what deleted the name last, such as ``del x` in In [5]`, or an empty text."""
    by = ""
    for run in history:
        if name not in run.source and "%reset" not in run.source:
            continue
        flow = dataflow_of(run.source)
        prompt = f" in In [{run.count}]" if run.count is not None else ""
        if name in flow.deleted:
            by = f"`{Cell(run.source, 0).line(flow.deleted[name])}`{prompt}"
        elif magic := clearing_magic(run.source, name):
            by = f"`{magic}`{prompt}"
        elif name in flow.bound and run.ok:
            by = ""
    return by


def deleted(name: str, where: str) -> str:
    return f"`{name}` was defined by {where}, which was deleted or changed since it ran."


def from_earlier(name: str, line: str) -> str:
    return (
        f"No cell of the notebook defines `{name}` now. Before the kernel restart, a cell did: `{line}`. It was "
        "deleted or changed since."
    )


def conditional(name: str, where: str, binding: Binding) -> str:
    if binding.under.startswith("a call"):
        return f"`{name}` is assigned in {binding.under}, see {where}; there was no such call."
    return f"`{name}` is defined in {where} only under `{binding.under}`, and that part did not run."


def own_later(name: str, binding: Binding) -> str:
    return f"This cell reads `{name}` before assigning it at line {binding.line}."


def own_passed_by(name: str, binding: Binding) -> str:
    under = f"`{binding.under}` (line {binding.line})"
    return f"This cell assigns `{name}` only under {under}, and that part did not run."


def own_deleted(name: str, line: int) -> str:
    return f"This cell deletes `{name}` itself, at line {line}."


def unreadable(name: str, cell: Cell) -> str:
    ran = " and failed" if cell.state == "failed" else ""
    where = _capitalized(cell.where())
    return f"{where} seems to define `{name}`, but it is not valid Python (SyntaxError){ran}."


def imported(name: str, line: str, *, there: bool) -> str:
    lacks = "" if there else " It is not installed here."
    return f"No cell of this notebook imports `{name}`; the usual import is `{line}`.{lacks}"


def inside(name: str, inner: InnerName, label: str) -> str:
    place = f"{label}, line {inner.line}"
    if inner.kind == "class":
        return f"`{name}` belongs to the class `{inner.owner}` ({place}); outside of it, write `{inner.owner}.{name}`."
    if inner.kind == "except":
        return (
            f"`{name}` exists only inside its `except` ({place}); Python deletes it at the end of that block."
        )
    if inner.kind == "comprehension":
        return f"`{name}` exists only inside a comprehension ({place})."
    owner = f"the function `{inner.owner}`" if inner.owner else "a lambda"
    return f"`{name}` exists only inside {owner} ({place}), while it runs."


def star(name: str, module: str, cell: Cell) -> str:
    return f"`{module}` has `{name}`, and {cell.where()}, which imports everything from it, has not been run."


def near(name: str, names: Sequence[str]) -> str:
    listed = " or ".join(f"`{similar}`" for similar in names)
    return f"No cell of this notebook defines `{name}`. A similar name exists: {listed}."


def stale(function: str, count: int, cell: Cell) -> str:
    return (
        f"`{function}` ran as defined in In [{count}]. {_capitalized(cell.label)} now has a changed version of it, "
        "which has not been run."
    )


def blocked(cells: Sequence[Cell], definer: Cell) -> str:
    """Return why the cells cannot be run again."""
    if cells[0] is definer:
        return " Fix that cell first: it would fail again."
    return f" That needs {cells[0].where()}, which failed; fix that cell first."


def lacking(name: str, reader: Cell) -> str:
    return f" {_capitalized(reader.label)} itself reads `{name}`, which no cell defines."


def seems_to_define(name: str, source: str) -> bool:
    """Return whether a text that is not Python looks as if it binds the name."""
    word = re.escape(name)
    pattern = rf"^\s*(?:{word}\s*(?::[^=\n]+)?=(?!=)|(?:def|class)\s+{word}\b|(?:from\s+\S+\s+)?import\b.*\b{word}\b)"
    return re.search(pattern, source, re.MULTILINE) is not None


def _listed(labels: Sequence[str]) -> str:
    parts = (
        [*labels[:_SHOWN_CELLS], f"{len(labels) - _SHOWN_CELLS} more"]
        if len(labels) > _SHOWN_CELLS
        else [*labels]
    )
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]

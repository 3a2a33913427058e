"""Patches of a cell's program as edits of one cell."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from healkit.parts.cells.cell_program import CellProgram, Segment
from healkit.parts.cells.dataflow import read_cell
from healkit.parts.cells.notebook_file import CellRun
from healkit.parts.cells.own_cells import prompt_of

_LINE = re.compile(r"\bline (\d+)\b")


def edited_cell(program: CellProgram, code: str) -> tuple[CellRun, str] | None:
    """Return the one cell that a patch of the program edits, and its new text; None if it edits more than one."""
    before, after = program.code.split("\n"), code.split("\n")
    head: list[str] = []
    while len(after) > len(before) and after[0] != before[0] and _are_imports(after[:1]):
        head.append(after.pop(0))
    changes = [
        change
        for change in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    if not changes and not head:
        return None
    imports = [
        opcode for opcode in changes if opcode[0] == "insert" and _are_imports(after[opcode[3] : opcode[4]])
    ]
    edits = [opcode for opcode in changes if opcode not in imports]
    places = [_segment_of(program, first, last, [*after, ""][start]) for _, first, last, start, _ in edits]
    places = places or [program.segments[-1]]
    segment = places[0]
    if segment is None or any(place is not segment for place in places):
        return None
    lines = segment.run.source.split("\n")
    for _, first, last, start, end in reversed(edits):
        offset = first - (segment.start - 1) + segment.first - 1
        lines[offset : offset + last - first] = after[start:end]
    added = [
        line
        for line in (*head, *(line for opcode in imports for line in after[opcode[3] : opcode[4]]))
        if line.strip()
    ]
    at = 1 if lines[0].startswith("%%") else 0
    text = "\n".join([*lines[:at], *added, *lines[at:]])
    return None if read_cell(text).tree is None else (segment.run, text)


def in_cell(program: CellProgram, reason: str) -> str:
    """Return a sentence on the program with the line numbers of the cell."""

    def line_of_cell(match: re.Match[str]) -> str:
        place = program.cell_at(int(match[1]))
        if place is None:
            return match[0]
        run = place[0].run
        return f"line {place[1]}" + (f" of {prompt_of(run)}" if run in program.above else "")

    return _LINE.sub(line_of_cell, reason)


def _are_imports(lines: Sequence[str]) -> bool:
    return all(not line.strip() or re.match(r"(import|from) ", line) for line in lines)


def _segment_of(program: CellProgram, first: int, last: int, text: str) -> Segment | None:
    """Return the segment that contains the lines from `first` to before `last` (from 0); for an insertion, its place.

    text: The line that is there afterwards; an indented line between two segments belongs to the first.
    """
    for segment in reversed(program.segments):
        start, end = segment.start - 1, segment.start - 1 + segment.count
        if first == last == start and text[:1].isspace():
            continue
        if (
            start <= first
            and last <= end
            and (first < end or segment is program.segments[-1] or first == last)
        ):
            return segment
    return None

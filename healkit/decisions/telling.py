"""Telling of a chooser: `tell` makes all that it is told.

A plan and a person are told the facts as they are. Any other chooser may send what it is told away, and may choose so
that a count spells a cell: `SELECT ... FROM range((SELECT max(salary) FROM staff))` has as many rows as one salary. So
it is told counts of results in one digit only, durations too; no counts of columns where it has written the query
itself; and which of the names that it asks for are there only for a limited number of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from healkit.contracts.decisions import FoundEntities, StateGap, StepFacts, TextFacts, Turn, ViewFacts

#: `given` by the caller; `made` by a tool; `free`: made by a query that the chooser wrote, or of such a view.
Origin = Literal["given", "made", "free"]
#: Columns and values of a result that are listed by names of ours.
NUMBERED_MAX = 10
#: Names that may be asked for in a step, and in all.
ASKED_MAX, ASKED_IN_ALL_MAX = 20, 100


def tell(turn: Turn, origins: Mapping[str, Origin], *, in_full: bool) -> Turn:
    """Return what the chooser is told of the facts.

    origins: by the views' names. in_full: whether it is a plan or a person.
    """
    if in_full:
        return turn
    by_name = {view.name: view for view in turn.views}
    asked, steps = 0, []
    for step in turn.steps:
        number = _asked(step)
        asked += number
        names = number <= ASKED_MAX and asked <= ASKED_IN_ALL_MAX
        made = by_name.get(str(step.choice.get("viewName")))
        steps.append(_step(step, made, names=names))
    views = [_view(view, origins[view.name]) for view in turn.views]
    return msgspec.structs.replace(turn, views=views, steps=steps)


def rounded(count: int) -> int:
    """Round a count to one digit; 0 stays, and 10 stands for 1 to 10."""
    if count <= 0:
        return 0
    unit: int = 10 ** (len(str(count)) - 1)
    return max(10, (count + unit // 2) // unit * unit)


def _view(view: ViewFacts, origin: Origin) -> ViewFacts:
    if origin == "given":
        return view
    columns, numbered = [], 0
    for column in view.columns:
        numbered += column.numbered
        if column.numbered and numbered > NUMBERED_MAX:
            continue
        is_told = origin == "made"
        columns.append(
            msgspec.structs.replace(
                column,
                nulls=rounded(column.nulls) if is_told and column.nulls is not None else None,
                distinct=rounded(column.distinct) if is_told and column.distinct is not None else None,
            )
        )
    left_out = rounded(view.column_count - len(columns))
    return msgspec.structs.replace(
        view,
        row_count=rounded(view.row_count),
        column_count=len(columns) + left_out,
        columns=columns,
        columns_left_out=left_out,
        columns_numbered=min(numbered, NUMBERED_MAX),
        rounded=True,
        text=None if view.text is None else _text(view.text, is_told=origin == "made"),
    )


def _text(text: TextFacts, *, is_told: bool) -> TextFacts:
    """Round the counts of a text; without a word on what is in it where the chooser wrote the query."""
    fields: dict[str, Any] = msgspec.structs.asdict(text)
    for name, value in fields.items():
        if isinstance(value, int):
            fields[name] = rounded(value) if is_told or name == "texts" else 0
        elif isinstance(value, dict) and name != "most_frequent":
            fields[name] = {kind: rounded(count) for kind, count in value.items()} if is_told else {}
    return TextFacts(**fields)


def _step(step: StepFacts, made: ViewFacts | None, *, names: bool) -> StepFacts:
    gap = _gap(step, made, names=names)
    return msgspec.structs.replace(
        step,
        duration_ms=float(rounded(round(step.duration_ms))),
        row_count=None if step.row_count is None else rounded(step.row_count),
        column_count=None,  # a view lists its columns
        differs=gap or None,
        found=_found(step.found, names=names),
    )


def _found(found: FoundEntities | None, *, names: bool) -> FoundEntities | None:
    if found is None:
        return None
    candidates = found.candidates[:NUMBERED_MAX]
    if names:
        return FoundEntities(found.requested, found.found, found.missing, candidates)
    return FoundEntities(found.requested, rounded(found.found), [], candidates)


def _gap(step: StepFacts, made: ViewFacts | None, *, names: bool) -> StateGap:
    """Return the difference without what a name that is not told, or too many names, would say."""
    gap, wanted = step.differs or StateGap(), step.choice.get("intended") or {}
    rows = None if gap.rows is None else (gap.rows[0], rounded(gap.rows[1]))
    told = None if made is None else {column.name for column in made.columns}
    missing, ranges = list(gap.columns_missing), list(gap.ranges_missed)
    if told is not None:  # a name that is there, and not told, is missing
        missing = [name for name in wanted.get("columns") or [] if name in missing or name not in told]
        ranges = [name for name in wanted.get("ranges") or {} if name in ranges or name not in told]
    if not names:
        return StateGap(rows, [], rounded(gap.entities_missing), gap.entities_intended, [])
    return StateGap(rows, missing, gap.entities_missing, gap.entities_intended, ranges)


def _asked(step: StepFacts) -> int:
    """Count the names that a step asks for."""
    wanted = step.choice.get("intended") or {}
    entities = wanted.get("entities") or []
    listed = sum(map(len, entities.values())) if isinstance(entities, dict) else len(entities)
    found = 0 if step.found is None else step.found.requested
    return max(listed, found) + len(wanted.get("columns") or []) + len(wanted.get("ranges") or {})

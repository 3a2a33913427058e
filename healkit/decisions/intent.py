"""Intended states, compared with actual ones by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from healkit.contracts.decisions import Entity, Intended, StateGap
from healkit.decisions.labels import KnownNames
from healkit.decisions.metadata import is_text

#: Entity that is missing, and the column it is looked for in; None for any column of text.
Missing = tuple[Entity, str | None]


def entities_of(intended: Intended) -> list[Missing]:
    """Return the entities of an intended state with their columns."""
    wanted = intended.entities
    if wanted is None:
        return []
    if isinstance(wanted, Mapping):
        return [(entity, column) for column, entities in wanted.items() for entity in entities]
    return [(entity, None) for entity in wanted]


def gap_of(
    intended: Intended | None, frame: pd.DataFrame, names: KnownNames
) -> tuple[StateGap, list[Missing]]:
    """Compare; return the difference in counts and names, and the entities that are missing."""
    if intended is None:
        return StateGap(), []
    labels = set(frame.columns)
    wanted = entities_of(intended)
    missing = [one for one in wanted if not _holds(frame, one, names)]
    meant = intended.rows
    rows = None if meant is None or meant == len(frame) else (meant, len(frame))
    gap = StateGap(
        rows=rows,
        columns_missing=[name for name in intended.columns or [] if names.restored(name) not in labels],
        entities_missing=len(missing),
        entities_intended=len(wanted) if missing else 0,
        ranges_missed=[
            name
            for name, bounds in (intended.ranges or {}).items()
            if not _within(frame, names.restored(name), bounds)
        ],
    )
    return gap, missing


def actual_state(
    intended: Intended | None, frame: pd.DataFrame, missing: Sequence[Missing], names: KnownNames
) -> dict[str, Any] | None:
    """Return the state that was reached, by the keys of the intended one; None where nothing was intended.

    Of columns and entities it names those that were intended; ranges are true where all values lie within.
    """
    if intended is None:
        return None
    gap, _ = gap_of(intended, frame, names)
    state: dict[str, Any] = {"asIntended": not gap, "rows": len(frame)}
    if intended.columns is not None:
        state["columns"] = [name for name in intended.columns if name not in gap.columns_missing]
    if wanted := entities_of(intended):
        state["entities"] = {
            "requested": len(wanted),
            "found": len(wanted) - len(missing),
            "missing": [entity for entity, _ in missing],
        }
    if intended.ranges is not None:
        state["ranges"] = {name: name not in gap.ranges_missed for name in intended.ranges}
    return state


def with_entities(intended: Intended, replaced: Mapping[Entity, Any]) -> Intended:
    """Return the intended state with other entities in the place of some."""
    wanted = intended.entities
    entities: Any = wanted
    if isinstance(wanted, Mapping):
        entities = {column: [replaced.get(one, one) for one in found] for column, found in wanted.items()}
    elif wanted is not None:
        entities = [replaced.get(one, one) for one in wanted]
    return Intended(intended.rows, intended.columns, entities, intended.ranges)


def _holds(frame: pd.DataFrame, missing: Missing, names: KnownNames) -> bool:
    entity, name = missing
    entity = names.restored(entity)
    label = None if name is None else names.restored(name)
    for position, found in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if (found == label if name is not None else is_text(column)) and _in(column, entity):
            return True
    return False


def _in(column: pd.Series[Any], entity: Entity) -> bool:
    try:
        return bool(column.isin([entity]).any())
    except TypeError:  # a cell that cannot be hashed
        return any(value == entity for value in column if isinstance(value, str | int | float))


def _within(frame: pd.DataFrame, label: Any, bounds: tuple[float | None, float | None]) -> bool:
    """Return True if no value of that column lies outside the bounds; False without such a column of numbers."""
    at = [position for position, found in enumerate(frame.columns) if found == label]
    if not at:
        return False
    column = frame.iloc[:, at[0]]
    try:
        least, greatest = bounds
        outside = (least is not None and bool((column < least).any())) or (
            greatest is not None and bool((column > greatest).any())
        )
    except TypeError:
        return False
    return not outside

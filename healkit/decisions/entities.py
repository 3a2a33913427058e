"""Entities that a step misses, looked for in the data.

Two tries for each: first by the caller's aliases and by normalisation (case, accents, signs, spaces), then by likeness.
It finds candidates; which of several is meant is a question to a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from healkit.contracts.decisions import Entity
from healkit.decisions.labels import folded
from healkit.decisions.metadata import distinct_values, is_text

#: Least likeness of a near match, of 100, and the most that are offered.
_NEAR_LEAST, _NEAR_MAX = 84.0, 5
#: Distinct values that are looked through.
_POOL_MAX = 200_000

Try = Literal["same name", "near name"]
TRIES: tuple[Try, ...] = ("same name", "near name")


def pool_of(frames: Iterable[pd.DataFrame], label: Any | None) -> list[str]:
    """Return the distinct texts of that column, or of every column of text where no frame has it."""
    frames = list(frames)
    own = [frame.iloc[:, at] for frame in frames for at, found in enumerate(frame.columns) if found == label]
    columns = own or [frame.iloc[:, at] for frame in frames for at in range(len(frame.columns))]
    found: dict[str, None] = {}
    for column in filter(is_text, columns):
        found |= dict.fromkeys(value for value in distinct_values(column) or [] if isinstance(value, str))
        if len(found) >= _POOL_MAX:
            break
    return list(found)[:_POOL_MAX]


def candidates_for(
    entity: Entity, pool: Sequence[str], aliases: Mapping[str, Sequence[str]], how: Try
) -> list[str]:
    """Return the values of the pool that may be meant by an entity, the likeliest first."""
    names = [str(entity), *_aliases_of(str(entity), aliases)]
    if how == "same name":
        wanted = {folded(name) for name in names}
        return [value for value in pool if folded(value) in wanted]
    from rapidfuzz import fuzz, process  # late: most steps reach their intended state

    query, forms = folded(str(entity)), [folded(value) for value in pool]
    found = process.extract(query, forms, scorer=fuzz.ratio, limit=_NEAR_MAX, score_cutoff=_NEAR_LEAST)
    near = [pool[at] for _, _, at in found]
    if len(query) >= 4:  # the entity is the beginning of a longer name: Acme, Acme Corporation
        near += [
            value
            for value, form in zip(pool, forms, strict=True)
            if form.startswith(query) and value not in near
        ]
    return near[:_NEAR_MAX]


def replaced_in(value: Any, by: Mapping[Entity, Any]) -> Any:
    """Return JSON data with other entities in the place of some, wherever a whole value is one."""
    if isinstance(value, list):
        return [replaced_in(inner, by) for inner in value]
    if isinstance(value, dict):
        return {key: replaced_in(inner, by) for key, inner in value.items()}
    return (
        by.get(value, value)
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else value
    )


def _aliases_of(entity: str, aliases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the other names of an entity, in either direction of the table."""
    found: list[str] = []
    for name, others in aliases.items():
        group = [name, *others]
        if any(folded(one) == folded(entity) for one in group):
            found += group
    return found

"""Checks of a step, and its correction where it missed.

Code compares each result with the intended state. If a data operation misses entities, it runs once more with the
values of the data that are meant. These are found by the caller's aliases and by normalisation (case, accents, signs,
spaces), then by similarity. If several values may be meant, a person is asked. If a data operation fails and the caller
consents, the tool is healed, and the operation runs once more with the new revision. A correction counts only if the
retry reaches the intended state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from healkit.errors import HealkitError
from healkit.parts.decide.performing import Attempt, ChoiceRefused, Workshop
from healkit.parts.decide.record import DecideRecord, StepResult
from healkit.parts.decide.records import (
    Entity,
    EntityQuestion,
    ExecuteDataOp,
    FoundEntities,
    Intended,
    StateGap,
)
from healkit.parts.decide.telling import KnownNames, distinct_values, folded, is_text

#: Entity that is missing, and the column it is looked for in; None for any column of text.
Missing = tuple[Entity, str | None]

# Intended states, compared with actual ones.


class Comparison(NamedTuple):
    """Difference between a result and its intended state, the missing entities, and the facts for the audit.

    found: The intended entities that exist; None if none were intended.
    actual: The reached state, by the keys of the intended one; None if nothing was intended.
    """

    gap: StateGap = StateGap()
    missing: Sequence[Missing] = ()
    found: FoundEntities | None = None
    actual: dict[str, Any] | None = None


def compare(intended: Intended | None, frame: pd.DataFrame | None, names: KnownNames) -> Comparison:
    """Compare a result with its intended state; there is nothing to compare without a table."""
    if intended is None or frame is None:
        return Comparison()
    wanted = entities_of(intended)
    missing = [entity for entity in wanted if not _holds(frame, entity, names)]
    rows = None if intended.rows in (None, len(frame)) else (intended.rows or 0, len(frame))
    labels = set(frame.columns)
    ranges = intended.ranges or {}
    gap = StateGap(
        rows=rows,
        columns_missing=[name for name in intended.columns or [] if names.restored(name) not in labels],
        entities_missing=len(missing),
        entities_intended=len(wanted) if missing else 0,
        ranges_missed=[
            name for name, bounds in ranges.items() if not _within(frame, names.restored(name), bounds)
        ],
    )
    actual: dict[str, Any] = {"asIntended": not gap, "rows": len(frame)}
    if intended.columns is not None:
        actual["columns"] = [name for name in intended.columns if name not in gap.columns_missing]
    found = None
    if wanted:
        found = FoundEntities(len(wanted), len(wanted) - len(missing), [entity for entity, _ in missing])
        actual |= found_state(found)
    if intended.ranges is not None:
        actual["ranges"] = {name: name not in gap.ranges_missed for name in ranges}
    return Comparison(gap, missing, found, actual)


def found_state(found: FoundEntities) -> dict[str, Any]:
    """Return the findings for the audit."""
    return {"entities": {"requested": found.requested, "found": found.found, "missing": found.missing}}


def entities_of(intended: Intended) -> list[Missing]:
    """Return the entities of an intended state with their columns."""
    wanted = intended.entities or []
    if isinstance(wanted, Mapping):
        return [(entity, column) for column, entities in wanted.items() for entity in entities]
    return [(entity, None) for entity in wanted]


def _holds(frame: pd.DataFrame, missing: Missing, names: KnownNames) -> bool:
    entity, name = names.restored(missing[0]), missing[1]
    label = None if name is None else names.restored(name)
    columns = ((column_label, frame.iloc[:, at]) for at, column_label in enumerate(frame.columns))
    return any(
        _in(column, entity)
        for column_label, column in columns
        if (column_label == label if name is not None else is_text(column))
    )


def _in(column: pd.Series[Any], entity: Entity) -> bool:
    try:
        return bool(column.isin([entity]).any())
    except TypeError:  # a cell that cannot be hashed
        return any(value == entity for value in column if isinstance(value, str | int | float))


def _within(frame: pd.DataFrame, label: object, bounds: tuple[float | None, float | None]) -> bool:
    """Return True if no value of that column lies outside the bounds; False without such a column of numbers."""
    position = next((at for at, column_label in enumerate(frame.columns) if column_label == label), None)
    if position is None:
        return False
    column, (least, greatest) = frame.iloc[:, position], bounds
    try:
        too_low = least is not None and bool((column < least).any())
        return not too_low and not (greatest is not None and bool((column > greatest).any()))
    except TypeError:
        return False


# Corrections.

#: Replaced entities that the audit's sentence names.
_NAMED_MAX = 10


class Corrected(NamedTuple):
    """Result of a correction: `applied` is true only if the retry reached the intended state.

    attempt: The retry, if it replaces the first attempt.
    question: A person has to answer first.
    """

    applied: bool
    attempt: Attempt | None = None
    reached: Comparison = Comparison()
    question: EntityQuestion | None = None


class Corrector:
    """Corrects the data operations of one decision."""

    def __init__(self, shop: Workshop, record: DecideRecord) -> None:
        self._shop, self._record = shop, record
        self._aliases, self._ask = shop.asked.aliases, shop.asked.options.ask

    def resolve(self, choice: ExecuteDataOp, missing: Sequence[Missing]) -> Corrected:
        """Search the data for the names of the missing entities, and retry with them."""
        assert choice.intended is not None  # entities are missing of it
        inputs = [view.frame for view in self._shop.bound(choice.tool, choice.params).views]
        replacements: dict[Entity, Any] = {}
        for entity, column in missing:
            label = None if column is None else self._shop.names.restored(column)
            candidates = self._candidates(choice, entity, column, pool_of(inputs, label))
            if len(candidates) > 1:
                question = EntityQuestion(entity, column, candidates)
                answer = None if self._ask is None else self._ask(question)
                if answer not in candidates:
                    self._note(choice, "Several values may be meant; a person has to choose one.")
                    return Corrected(False, question=question)
                candidates = [answer]
            if candidates:
                replacements[entity] = candidates[0]
        params = replaced_in(choice.params, replacements)
        if not replacements or params == choice.params:
            return self._note(choice, "No value in the data is similar to a missing one.")
        try:
            attempt = self._shop.perform(choice.tool, params)
        except ChoiceRefused:  # a value that has the name of a view
            return self._note(choice, "The retry cannot be taken.")
        if attempt.frame is None:
            return self._note(choice, "The retry failed.", attempt, params)
        reached = compare(with_entities(choice.intended, replacements), attempt.frame, self._shop.names)
        replaced = [f"{entity} → {value}" for entity, value in list(replacements.items())[:_NAMED_MAX]]
        text = f"{', '.join(replaced)}. {len(replacements)} of {len(missing)} missing entities replaced; the retry "
        text += "misses the intended state." if reached.gap else "reached the intended state."
        self._note(choice, text, attempt, params, reached=reached)
        return Corrected(not reached.gap, None if reached.gap else attempt, reached)

    def heal(self, choice: ExecuteDataOp, attempt: Attempt) -> Corrected | None:
        """Heal the failing tool if the caller consents, and retry; None if nothing is tried."""
        options = self._shop.asked.options
        if options.heal is False or attempt.log_id is None:
            return None
        is_auto = options.heal is True
        try:
            report = self._shop.hk.heal(
                choice.tool, self._shop.tools[choice.tool].persona, auto=is_auto, log_id=attempt.log_id,
                confirm=None if is_auto else options.heal, stop=options.stop,
            )  # fmt: skip
        except HealkitError as error:
            return self._note(choice, f"Healing was not possible ({error.code}).")
        healing = {"run_id": report.run_id, "outcome": report.outcome, "revision": report.revision}
        if report.outcome != "kept":
            return self._note(choice, f"Healing ended: {report.outcome}.", healing=healing)
        self._shop.tools[choice.tool] = self._shop.lookup(choice.tool)
        retried = self._shop.perform(choice.tool, choice.params)
        if retried.frame is None:
            return self._note(choice, "The retry with the new revision failed.", retried, healing=healing)
        reached = compare(choice.intended, retried.frame, self._shop.names)
        as_intended = "has a result." if choice.intended is None else "reached the intended state."
        text = f"{choice.tool} v{report.revision} is active, healed in run {report.run_id}; the retry "
        text += "misses the intended state." if reached.gap else as_intended
        self._note(choice, text, retried, reached=reached, healing=healing)
        return Corrected(not reached.gap, retried, reached)

    def _candidates(
        self, choice: ExecuteDataOp, entity: Entity, column: str | None, pool: Sequence[str]
    ) -> list[str]:
        """Return the values that an entity may mean; each try is an entry of the audit."""
        candidates: list[str] = []
        for number, how in enumerate(TRIES, 1):
            candidates = candidates_for(entity, pool, self._aliases, how)
            result = StepResult(
                tool="resolve_entity",
                params={"entity": entity, "column": column, "try": number, "by": how},
                sentence=f"Attempt {number} for a missing entity, by {how}: {len(candidates)} of {len(pool):,} values.",
                rows=len(candidates),
                known={"tool": choice.tool, "candidates": candidates},
            )
            self._record.step("gather_info", result, in_run=False)
            if candidates:
                break
        return candidates

    def _note(
        self, choice: ExecuteDataOp, sentence: str, attempt: Attempt | None = None,
        params: Mapping[str, Any] | None = None, *, reached: Comparison | None = None,
        healing: Mapping[str, Any] | None = None,
    ) -> Corrected:  # fmt: skip
        """Record a correction; without a `reached` state, it failed."""
        applied = reached is not None and not reached.gap
        result = StepResult(
            tool=choice.tool,
            params=self._shop.recorded(choice, params),
            sentence=sentence,
            success=applied,
            code=None if applied else "CORRECTION_FAILED",
            intended=choice.intended,
            actual=None if reached is None else reached.actual,
            applied=applied,
            known={"healing": dict(healing)} if healing else {},
            **({} if attempt is None else attempt.measured()),
        )
        self._record.step("self_correction", result, in_run=attempt is not None)
        return Corrected(applied)


# Entities that a step misses, looked for in the data.


#: Least likeness of a near match, of 100, and the most that are offered.
_NEAR_LEAST, _NEAR_MAX = 84.0, 5
#: Distinct values that are looked through.
_POOL_MAX = 200_000

Try = Literal["same name", "near name"]
TRIES: tuple[Try, ...] = ("same name", "near name")


def pool_of(frames: Iterable[pd.DataFrame], label: object) -> list[str]:
    """Return the distinct texts of that column, or of every column of text if no frame has it."""
    columns = [(name, frame.iloc[:, at]) for frame in frames for at, name in enumerate(frame.columns)]
    matching = [column for name, column in columns if name == label] or [column for _, column in columns]
    texts: dict[str, None] = {}
    for column in filter(is_text, matching):
        texts |= dict.fromkeys(value for value in distinct_values(column) or [] if isinstance(value, str))
        if len(texts) >= _POOL_MAX:
            break
    return list(texts)[:_POOL_MAX]


def candidates_for(
    entity: Entity, pool: Sequence[str], aliases: Mapping[str, Sequence[str]], how: Try
) -> list[str]:
    """Return the values of the pool that an entity may mean, likeliest first."""
    query = folded(str(entity))
    if how == "same name":  # aliases count in either direction of the table
        groups = [{folded(name) for name in (main, *others)} for main, others in aliases.items()]
        wanted = {query}.union(*(group for group in groups if query in group))
        return [value for value in pool if folded(value) in wanted]
    from rapidfuzz import fuzz, process  # late: most steps reach their intended state

    forms = [folded(value) for value in pool]
    matches = process.extract(query, forms, scorer=fuzz.ratio, limit=_NEAR_MAX, score_cutoff=_NEAR_LEAST)
    near = [pool[at] for _, _, at in matches]
    if len(query) >= 4:  # the entity is the beginning of a longer name: Acme, Acme Corporation
        longer = [value for value, form in zip(pool, forms, strict=True) if form.startswith(query)]
        near += [value for value in longer if value not in near]
    return near[:_NEAR_MAX]


def replaced_in(value: object, by: Mapping[Entity, Any]) -> Any:
    """Return JSON data with some entities replaced, wherever one is a whole value."""
    if isinstance(value, list):
        return [replaced_in(inner, by) for inner in value]
    if isinstance(value, dict):
        return {key: replaced_in(inner, by) for key, inner in value.items()}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return by.get(value, value)
    return value


def with_entities(intended: Intended, replaced: Mapping[Entity, Any]) -> Intended:
    """Return the intended state with some entities replaced."""
    entities = replaced_in(intended.entities, replaced)
    return Intended(intended.rows, intended.columns, entities, intended.ranges)

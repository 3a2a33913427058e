"""Corrections of a step, counted only when met.

A data operation that missed entities is run once more with those of the data's own values that are meant: found by the
caller's aliases and by normalisation (case, accents, signs, spaces), then by likeness; which of several is meant is a
question to a person. One that failed goes to healing, where the caller consents, and is run once more with the new
revision. Whether a state is the intended one, code says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from healkit.errors import HealkitError
from healkit.parts.decide.performing import Attempt, ChoiceRefused, Workshop
from healkit.parts.decide.record import DecideRecord, StepResult
from healkit.parts.decide.records import Entity, EntityQuestion, ExecuteDataOp, Intended, StateGap
from healkit.parts.decide.telling import KnownNames, distinct_values, folded, is_text

#: Replaced entities that the audit's sentence names.
_NAMED_MAX = 10


@dataclasses.dataclass(frozen=True)
class Corrected:
    """Result of a correction: `applied` is true only where the retry met the intended state.

    attempt: the retry, where it is to be taken in the first attempt's place. question: a person has to answer first.
    """

    applied: bool | None
    attempt: Attempt | None = None
    gap: StateGap = dataclasses.field(default_factory=StateGap)
    question: EntityQuestion | None = None


class Corrector:
    """Corrects the data operations of one decision."""

    def __init__(self, shop: Workshop, record: DecideRecord) -> None:
        self._shop, self._record = shop, record
        self._aliases, self._ask = shop.asked.aliases, shop.asked.options.ask

    def resolve(self, choice: ExecuteDataOp, missing: Sequence[Missing]) -> Corrected:
        """Look for what the missing entities are called in the data, and retry with it."""
        assert choice.intended is not None  # entities are missing of it
        inputs = self._shop.inputs(choice.tool, choice.params)
        replacements: dict[Entity, Any] = {}
        for entity, column in missing:
            label = None if column is None else self._shop.names.restored(column)
            candidates = self._candidates(choice, entity, column, pool_of(inputs, label))
            if len(candidates) > 1:
                question = EntityQuestion(entity, column, candidates)
                text = None if self._ask is None else self._ask(question)
                if text not in candidates:
                    self._failed(choice, "Several values may be meant; a person has to say which.")
                    return Corrected(False, question=question)
                candidates = [text]
            if candidates:
                replacements[entity] = candidates[0]
        params = replaced_in(choice.params, replacements)
        if not replacements or params == choice.params:
            self._failed(choice, "Nothing in the data is like what is missing.")
            return Corrected(False)
        try:
            attempt = self._shop.perform(choice.tool, params)
        except ChoiceRefused:  # a value that has the name of a view
            self._failed(choice, "The retry cannot be taken.")
            return Corrected(False)
        intended = with_entities(choice.intended, replacements)
        if attempt.frame is None:
            self._failed(choice, "The retry failed.", attempt, params)
            return Corrected(False)
        gap, _ = gap_of(intended, attempt.frame, self._shop.names)
        replaced = [f"{entity} → {value}" for entity, value in list(replacements.items())[:_NAMED_MAX]]
        text = f"{', '.join(replaced)}. {len(replacements)} of {len(missing)} missing entities replaced; the retry "
        text += "misses the intended state." if gap else "reached the intended state."
        self._tell(choice, text, attempt, params, applied=not gap, intended=intended)
        return Corrected(not gap, None if gap else attempt, gap)

    def heal(self, choice: ExecuteDataOp, attempt: Attempt) -> Corrected | None:
        """Have the failing tool healed where the caller consents, and retry; None where nothing is tried."""
        options = self._shop.asked.options
        if options.heal is False or attempt.log_id is None:
            return None
        entry = self._shop.tools[choice.tool]
        confirm = None if options.heal is True else options.heal
        try:
            report = self._shop.hk.heal(
                choice.tool, entry.persona, auto=options.heal is True, log_id=attempt.log_id, confirm=confirm,
                stop=options.stop,
            )  # fmt: skip
        except HealkitError as error:
            self._failed(choice, f"Healing was not possible ({error.code}).")
            return Corrected(False)
        healing = {"run_id": report.run_id, "outcome": report.outcome, "revision": report.revision}
        if report.outcome != "kept":
            self._failed(choice, f"Healing ended: {report.outcome}.", healing=healing)
            return Corrected(False)
        self._shop.tools[choice.tool] = self._shop.lookup(choice.tool)
        retried = self._shop.perform(choice.tool, choice.params)
        if retried.frame is None:
            self._failed(choice, "The retry with the new revision failed.", retried, healing=healing)
            return Corrected(False)
        gap, _ = gap_of(choice.intended, retried.frame, self._shop.names)
        sentence = f"{choice.tool} v{report.revision} is active, healed in run {report.run_id}; the retry "
        reached = "has a result." if choice.intended is None else "reached the intended state."
        sentence += "misses the intended state." if gap else reached
        self._tell(
            choice,
            sentence,
            retried,
            choice.params,
            applied=not gap,
            intended=choice.intended,
            healing=healing,
        )
        return Corrected(not gap, retried, gap)

    def _candidates(
        self, choice: ExecuteDataOp, entity: Entity, column: str | None, pool: Sequence[str]
    ) -> list[str]:
        """Return what may be meant by an entity, each try an entry of the audit."""
        candidates: list[str] = []
        for number, how in enumerate(TRIES, 1):
            candidates = candidates_for(entity, pool, self._aliases, how)
            self._record.step(
                "gather_info",
                StepResult(
                    tool="resolve_entity",
                    params={"entity": entity, "column": column, "try": number, "by": how},
                    sentence=f"Try {number} for a missing entity, by {how}: {len(candidates)} of {len(pool):,} values.",
                    rows=len(candidates),
                    known={"tool": choice.tool, "candidates": candidates},
                ),
                in_run=False,
            )  # fmt: skip
            if candidates:
                break
        return candidates

    def _failed(
        self, choice: ExecuteDataOp, why: str, attempt: Attempt | None = None, params: Mapping[str, Any] | None = None,
        healing: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._tell(
            choice, why, attempt, choice.params if params is None else params, applied=False, healing=healing
        )

    def _tell(
        self, choice: ExecuteDataOp, sentence: str, attempt: Attempt | None, params: Mapping[str, Any], *,
        applied: bool, intended: Intended | None = None, healing: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        frame = None if attempt is None else attempt.frame
        logged = self._shop.tools[choice.tool].logged
        actual = None
        if frame is not None and intended is not None:
            _, missing = gap_of(intended, frame, self._shop.names)
            actual = actual_state(intended, frame, missing, self._shop.names)
        self._record.step(
            "self_correction",
            StepResult(
                tool=choice.tool,
                params=dict(params) if logged else {},
                sentence=sentence,
                success=applied,
                code=None if applied else "CORRECTION_FAILED",
                column=None if attempt is None else attempt.column,
                duration_ms=0.0 if attempt is None else attempt.duration_ms,
                rows=None if frame is None else len(frame),
                columns=None if frame is None else len(frame.columns),
                intended=choice.intended,
                actual=actual,
                applied=applied,
                known={"healing": dict(healing)} if healing else {},
            ),
            in_run=attempt is not None,
        )


# Entities that a step misses, looked for in the data.


#: Least likeness of a near match, of 100, and the most that are offered.
_NEAR_LEAST, _NEAR_MAX = 84.0, 5
#: Distinct values that are looked through.
_POOL_MAX = 200_000

Try = Literal["same name", "near name"]
TRIES: tuple[Try, ...] = ("same name", "near name")


def pool_of(frames: Iterable[pd.DataFrame], label: object) -> list[str]:
    """Return the distinct texts of that column, or of every column of text where no frame has it."""
    frames = list(frames)
    matching = [
        frame.iloc[:, at]
        for frame in frames
        for at, column_label in enumerate(frame.columns)
        if column_label == label
    ]
    columns = matching or [frame.iloc[:, at] for frame in frames for at in range(len(frame.columns))]
    texts: dict[str, None] = {}
    for column in filter(is_text, columns):
        texts |= dict.fromkeys(value for value in distinct_values(column) or [] if isinstance(value, str))
        if len(texts) >= _POOL_MAX:
            break
    return list(texts)[:_POOL_MAX]


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
    matches = process.extract(query, forms, scorer=fuzz.ratio, limit=_NEAR_MAX, score_cutoff=_NEAR_LEAST)
    near = [pool[at] for _, _, at in matches]
    if len(query) >= 4:  # the entity is the beginning of a longer name: Acme, Acme Corporation
        near += [
            value
            for value, form in zip(pool, forms, strict=True)
            if form.startswith(query) and value not in near
        ]
    return near[:_NEAR_MAX]


def replaced_in(value: object, by: Mapping[Entity, Any]) -> Any:
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
    names: list[str] = []
    for name, synonyms in aliases.items():
        group = [name, *synonyms]
        if any(folded(alias) == folded(entity) for alias in group):
            names += group
    return names


# Intended states, compared with actual ones.


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
    missing = [entity for entity in wanted if not _holds(frame, entity, names)]
    intended_rows = intended.rows
    rows = None if intended_rows is None or intended_rows == len(frame) else (intended_rows, len(frame))
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
    entities = wanted
    if isinstance(wanted, Mapping):
        entities = {
            column: [replaced.get(entity, entity) for entity in values] for column, values in wanted.items()
        }
    elif wanted is not None:
        entities = [replaced.get(entity, entity) for entity in wanted]
    return Intended(intended.rows, intended.columns, entities, intended.ranges)


def _holds(frame: pd.DataFrame, missing: Missing, names: KnownNames) -> bool:
    entity, name = missing
    entity = names.restored(entity)
    label = None if name is None else names.restored(name)
    for position, column_label in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if (column_label == label if name is not None else is_text(column)) and _in(column, entity):
            return True
    return False


def _in(column: pd.Series[Any], entity: Entity) -> bool:
    try:
        return bool(column.isin([entity]).any())
    except TypeError:  # a cell that cannot be hashed
        return any(value == entity for value in column if isinstance(value, str | int | float))


def _within(frame: pd.DataFrame, label: object, bounds: tuple[float | None, float | None]) -> bool:
    """Return True if no value of that column lies outside the bounds; False without such a column of numbers."""
    at = [position for position, column_label in enumerate(frame.columns) if column_label == label]
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

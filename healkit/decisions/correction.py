"""Corrections of a step, counted only when met.

A data operation that missed entities is run once more with those of the data's own values that are meant. One that
failed goes to healing, where the caller consents, and is run once more with the new revision.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from healkit.contracts.decisions import Entity, EntityQuestion, ExecuteDataOp, Intended, StateGap
from healkit.contracts.healing import HealReportData
from healkit.contracts.vault import VaultEntry
from healkit.decisions.entities import TRIES, candidates_for, pool_of, replaced_in
from healkit.decisions.intent import Missing, actual_state, gap_of, with_entities
from healkit.decisions.performing import Attempt, ChoiceRefused, Workshop
from healkit.decisions.record import DecideRecord, StepResult
from healkit.errors import HealkitError

#: Gets the question which value is meant; returns one of its candidates, or None.
Ask = Callable[[EntityQuestion], Any]
#: Consent to healing: False, True for cures that pass every check, or a function that is asked about each patch.
HealConsent = bool | Callable[..., Any]
#: Replaced entities that the audit's sentence names.
_NAMED_MAX = 10


class Heals(Protocol):
    """Part of healing that a decision uses."""

    def heal(
        self, tool_name: str, persona: str = ..., *, auto: bool = ..., log_id: int | None = ..., confirm: Any = ...,
        stop: threading.Event | None = ...,
    ) -> HealReportData: ...  # fmt: skip


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

    def __init__(
        self, shop: Workshop, record: DecideRecord, heals: Heals, lookup: Callable[[str], VaultEntry],
        aliases: Mapping[str, Sequence[str]], consent: HealConsent, ask: Ask | None, stop: threading.Event,
    ) -> None:  # fmt: skip
        self._shop, self._record, self._heals, self._lookup = shop, record, heals, lookup
        self._aliases, self._consent, self._ask, self._stop = aliases, consent, ask, stop

    def resolve(self, choice: ExecuteDataOp, missing: Sequence[Missing]) -> Corrected:
        """Look for what the missing entities are called in the data, and retry with it."""
        assert choice.intended is not None  # entities are missing of it
        inputs = self._shop.inputs(choice.tool, choice.params)
        meant: dict[Entity, Any] = {}
        for entity, column in missing:
            label = None if column is None else self._shop.names.restored(column)
            found = self._candidates(choice, entity, column, pool_of(inputs, label))
            if len(found) > 1:
                question = EntityQuestion(entity, column, found)
                said = None if self._ask is None else self._ask(question)
                if said not in found:
                    self._failed(choice, "Several values may be meant; a person has to say which.")
                    return Corrected(False, question=question)
                found = [said]
            if found:
                meant[entity] = found[0]
        params = replaced_in(choice.params, meant)
        if not meant or params == choice.params:
            self._failed(choice, "Nothing in the data is like what is missing.")
            return Corrected(False)
        try:
            attempt = self._shop.perform(choice.tool, params)
        except ChoiceRefused:  # a value that has the name of a view
            self._failed(choice, "The retry cannot be taken.")
            return Corrected(False)
        intended = with_entities(choice.intended, meant)
        if attempt.frame is None:
            self._failed(choice, "The retry failed.", attempt, params)
            return Corrected(False)
        gap, _ = gap_of(intended, attempt.frame, self._shop.names)
        replaced = [f"{entity} → {value}" for entity, value in list(meant.items())[:_NAMED_MAX]]
        said = f"{', '.join(replaced)}. {len(meant)} of {len(missing)} missing entities replaced; the retry "
        said += "misses the intended state." if gap else "reached the intended state."
        self._tell(choice, said, attempt, params, applied=not gap, intended=intended)
        return Corrected(not gap, None if gap else attempt, gap)

    def heal(self, choice: ExecuteDataOp, attempt: Attempt) -> Corrected | None:
        """Have the failing tool healed where the caller consents, and retry; None where nothing is tried."""
        if self._consent is False or attempt.log_id is None:
            return None
        entry = self._shop.tools[choice.tool]
        confirm = None if self._consent is True else self._consent
        try:
            report = self._heals.heal(
                choice.tool, entry.persona, auto=self._consent is True, log_id=attempt.log_id, confirm=confirm,
                stop=self._stop,
            )  # fmt: skip
        except HealkitError as error:
            self._failed(choice, f"Healing was not possible ({error.code}).")
            return Corrected(False)
        healing = {"run_id": report.run_id, "outcome": report.outcome, "revision": report.revision}
        if report.outcome != "kept":
            self._failed(choice, f"Healing ended: {report.outcome}.", healing=healing)
            return Corrected(False)
        self._shop.tools[choice.tool] = self._lookup(choice.tool)
        retried = self._shop.perform(choice.tool, choice.params)
        if retried.frame is None:
            self._failed(choice, "The retry with the new revision failed.", retried, healing=healing)
            return Corrected(False)
        gap, _ = gap_of(choice.intended, retried.frame, self._shop.names)
        said = f"{choice.tool} v{report.revision} is active, healed in run {report.run_id}; the retry "
        reached = "has a result." if choice.intended is None else "reached the intended state."
        said += "misses the intended state." if gap else reached
        self._tell(
            choice, said, retried, choice.params, applied=not gap, intended=choice.intended, healing=healing
        )
        return Corrected(not gap, retried, gap)

    def _candidates(
        self, choice: ExecuteDataOp, entity: Entity, column: str | None, pool: Sequence[str]
    ) -> list[str]:
        """Return what may be meant by an entity, each try an entry of the audit."""
        found: list[str] = []
        for number, how in enumerate(TRIES, 1):
            found = candidates_for(entity, pool, self._aliases, how)
            self._record.step(
                "gather_info",
                StepResult(
                    tool="resolve_entity",
                    params={"entity": entity, "column": column, "try": number, "by": how},
                    sentence=f"Try {number} for a missing entity, by {how}: {len(found)} of {len(pool):,} values.",
                    rows=len(found),
                    known={"tool": choice.tool, "candidates": found},
                ),
                in_run=False,
            )  # fmt: skip
            if found:
                break
        return found

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

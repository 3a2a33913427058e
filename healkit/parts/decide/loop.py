"""Loop of a decision: a turn, a choice, a step, until the end.

The chooser sees metadata only. Code checks each choice, runs it, compares the result with what was intended, and
writes it down before the next turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from healkit.errors import HealkitError, PolicyHalted
from healkit.parts.decide.asked import Asked, HeldView
from healkit.parts.decide.correction import Corrected, Corrector, Missing, actual_state, entities_of, gap_of
from healkit.parts.decide.decision import INTERRUPTED
from healkit.parts.decide.performing import Attempt, ChoiceRefused, Workshop, kind_of, unique_counts
from healkit.parts.decide.record import DecideRecord, StepResult, StepType, text_form
from healkit.parts.decide.records import (
    Choice,
    DecisionOutcome,
    DoneStep,
    EntityQuestion,
    ExecuteDataOp,
    ExecuteOutput,
    Finalize,
    FoundEntities,
    GatherInfo,
    Intended,
    Resumed,
    StateGap,
    StepFacts,
    Turn,
)
from healkit.parts.decide.telling import as_frame, tell
from healkit.parts.runs.contract import Halt, PolicyDefaults

#: The same choice that halts the decision when it is made that often, and the bytes of one.
REPEATED_MAX, CHOICE_MAX_BYTES = 10, 64 * 1024


class Ended(NamedTuple):
    """Ending of the loop; `view` is a name of the decision's own."""

    outcome: DecisionOutcome
    reason: str
    view: str | None = None
    asked_for: EntityQuestion | None = None


class DecideLoop:
    """Loop of one decision."""

    def __init__(self, asked: Asked, shop: Workshop, record: DecideRecord) -> None:
        self.sent: list[Turn] = []
        self.marked: list[str] = []
        self._asked, self._shop, self._record = asked, shop, record
        self._corrector = Corrector(shop, record)
        self._tools = asked.offered
        self._in_full = bool(getattr(asked.chooser, "told_in_full", False))
        self._steps: list[StepFacts] = []
        self._problem: str | None = None
        self._made: Counter[bytes] = Counter()

    def restore(self, resumed: Resumed) -> None:
        """Take the turns and the steps of the run that is resumed as this one's own; raise as `views.load` does."""
        for turn in resumed.turns:
            self._record.sent(turn)
            self.sent.append(turn)
        for done in resumed.done:
            choice = done.step.choice
            if done.view is not None:
                self._shop.restore(
                    choice["viewName"], choice["tool"], choice["params"], done.view, done.texts
                )
            if done.stand_ins is not None:
                self._shop.restore_stand_ins(done.stand_ins)
            if done.step.differs or done.step.corrected is False:
                self.marked.append(f"The view {choice['viewName']} does not have the intended state.")
            self._steps.append(done.step)
            self._record.finished(done)
        self._problem = resumed.problem

    def go(self) -> Ended:
        """Take turns until the end; what a chooser of the caller's own raises goes through."""
        try:
            return self._turns()
        except PolicyHalted as halted:
            return Ended("halted", halted.message)
        except KeyboardInterrupt:
            return Ended("stopped", INTERRUPTED)

    def _turns(self) -> Ended:
        problem, stop = self._problem, self._asked.options.stop
        hard_cap = (self._asked.options.policy or PolicyDefaults()).hard_cap_steps
        while True:
            if stop.is_set():
                return Ended("stopped", "It was stopped by the caller.")
            if len(self.sent) >= hard_cap:
                reason = f"The decision has taken {hard_cap} turns, which is all it may take."
                return self._halt("hard_cap_steps", reason, len(self.sent), hard_cap)
            turn = self._turn(problem)
            try:
                chosen = self._asked.chooser.choose(turn)
            except HealkitError as error:
                if stop.is_set():
                    return Ended("stopped", "It was stopped by the caller.")
                return Ended("halted", f"The chooser failed ({error.code}): {error.message}")
            if chosen is None:
                return Ended("stopped", self._why_stopped(problem))
            try:
                choice = self._checked(chosen)
            except ChoiceRefused as refused:
                self._refuse(str(refused))
                if problem is not None:
                    return Ended("halted", f"Two choices in a row cannot be taken: {refused}")
                problem = str(refused)
                continue
            problem = None
            ended = self._take(choice)
            if ended is not None:
                return ended

    def _why_stopped(self, problem: str | None) -> str:
        reason = "The chooser made no further choice"
        if problem is not None:
            return f"{reason}: {problem}"
        if self._steps and not self._steps[-1].success:
            step = self._steps[-1]
            return f"{reason}: step {step.number}, {step.choice['tool']}, failed with {step.error_code}."
        return f"{reason}, and none was finalize."

    def last_turn(self) -> Turn:
        """Return what an analyst is told, recorded as a turn without tools."""
        self._tools, self._in_full = [], False
        return self._turn(None)

    def _turn(self, problem: str | None) -> Turn:
        views = [view.facts for view in self._shop.views.values()]
        facts = Turn(
            self._asked.question,
            len(self.sent) + 1,
            views,
            self._tools,
            list(self._steps),
            problem,
            list(self._asked.share),
        )
        origins = {name: view.origin for name, view in self._shop.views.items()}
        turn = tell(facts, origins, in_full=self._in_full)
        self._record.sent(turn)
        self.sent.append(turn)
        return turn

    def _checked(self, chosen: object) -> Choice:
        """Return a choice that can be taken; raise `ChoiceRefused` with the reason."""
        try:
            encoded = msgspec.json.encode(chosen)
            if len(encoded) > CHOICE_MAX_BYTES:
                raise ChoiceRefused(f"The choice is longer than {CHOICE_MAX_BYTES:,} bytes.")
            choice: Choice = msgspec.json.decode(encoded, type=Choice)
        except msgspec.ValidationError as error:
            raise ChoiceRefused(f"The choice does not fit its schema: {error}.") from None
        except (TypeError, ValueError, RecursionError):
            raise ChoiceRefused("The choice is not JSON.") from None
        self._check_names(choice)
        self._made[encoded] += 1
        return choice

    def _check_names(self, choice: Choice) -> None:
        views = self._shop.views
        if isinstance(choice, Finalize):
            if choice.final_view_name not in views:
                raise ChoiceRefused(
                    f"There is no view {choice.final_view_name!r}. There is: {', '.join(views)}."
                )
            return
        if choice.tool not in self._shop.tools:
            raise ChoiceRefused(
                f"The tool {choice.tool!r} is not among the tools: {', '.join(self._shop.tools)}."
            )
        self._shop.bound(choice.tool, choice.params)
        if isinstance(choice, GatherInfo) and (why := self._shop.effects_of(choice.tool)):
            raise ChoiceRefused(f"gather_info only looks, and {choice.tool} {why}.")
        if isinstance(choice, ExecuteDataOp) and choice.view_name in views:
            raise ChoiceRefused(f"The view {choice.view_name!r} exists already; views are written once.")

    def _refuse(self, reason: str) -> None:
        details = {"why": reason}
        refused = StepResult(
            sentence=f"The choice cannot be taken. {reason}",
            success=False,
            code="CHOICE_INVALID",
            known=details,
        )
        self._record.step("choice_refused", refused, in_run=False)

    def _take(self, choice: Choice) -> Ended | None:
        repeated = max(self._made.values(), default=0)
        if repeated >= REPEATED_MAX:
            return self._halt("same_choice", "The same choice was made ten times.", repeated, REPEATED_MAX)
        match choice:
            case Finalize():
                return self._finalize(choice)
            case ExecuteDataOp():
                return self._data_op(choice)
            case GatherInfo():
                self._gather(choice)
            case ExecuteOutput():
                self._output(choice)
        return None

    def _finalize(self, choice: Finalize) -> Ended:
        view = self._shop.views[choice.final_view_name]
        self._record.step(
            "finalize",
            StepResult(
                params={"finalViewName": choice.final_view_name},
                sentence=f"The result is the view {choice.final_view_name}.",
                rows=view.facts.row_count,
                columns=view.facts.column_count,
                unique_values=unique_counts(view.facts),
                known={"view": view.kept_as},
                view_files={view.kept_as: view.file_name},
            ),
            in_run=False,
        )
        return Ended("finalized", f"The result is the view {choice.final_view_name}.", choice.final_view_name)

    def _gather(self, choice: GatherInfo) -> None:
        attempt = self._shop.perform(choice.tool, choice.params)
        frame = None if attempt.code else as_frame(attempt.value)
        size = (
            (len(frame), len(frame.columns)) if frame is not None
            else (len(attempt.value), None) if isinstance(attempt.value, list | tuple | dict | set | frozenset)
            else (None, None)
        )  # fmt: skip
        entities = None
        if attempt.code is None:
            entities = self._shop.found(choice.tool, choice.params, attempt.value, len(self._steps) + 1)
        self._note("gather_info", choice, attempt, rows=size[0], columns=size[1], found=entities)

    def _output(self, choice: ExecuteOutput) -> None:
        attempt = self._shop.perform(choice.tool, choice.params)
        file: Path | None = None
        if attempt.code is None:
            code = None
            try:
                file = self._shop.write(choice.tool, attempt.value)
                code = None if file else "RESULT_NO_FILE"
            except OSError:
                code = "OUTPUT_NOT_WRITTEN"
            if code:
                attempt = Attempt(attempt.duration_ms, code=code, log_id=attempt.log_id)
        self._note("execute_output", choice, attempt, known={"file": file.name} if file else {}, file=file)

    def _data_op(self, choice: ExecuteDataOp) -> Ended | None:
        attempt = self._shop.perform(choice.tool, choice.params)
        gap = StateGap()
        missing: list[Missing] = []
        if attempt.code is None and not self._shop.is_view(choice.tool, choice.params, attempt):
            attempt = Attempt(attempt.duration_ms, code="RESULT_NO_FRAME", log_id=attempt.log_id)
        if attempt.frame is not None:
            gap, missing = gap_of(choice.intended, attempt.frame, self._shop.names)
        if not missing:
            attempt = self._kept(choice, attempt)
        self._record_op(choice, attempt, missing)
        corrected: Corrected | None = None
        if missing:
            corrected = self._corrector.resolve(choice, missing)
        elif attempt.code is not None:
            corrected = self._corrector.heal(choice, attempt)
        final = attempt
        if corrected is not None and corrected.attempt is not None:
            final, gap = corrected.attempt, corrected.gap
        if choice.view_name not in self._shop.views:
            final = self._kept(choice, final)
        if gap or (corrected is not None and corrected.applied is False):
            self.marked.append(f"The view {choice.view_name} does not have the intended state.")
        facts = self._shop.views.get(choice.view_name)
        self._remember(
            choice, final,
            row_count=facts.facts.row_count if facts else None,
            column_count=facts.facts.column_count if facts else None,
            differs=gap or None,
            corrected=None if corrected is None else corrected.applied,
            found=_found_of(choice.intended, [] if corrected is not None and corrected.applied else missing),
            view=facts,
        )  # fmt: skip
        if corrected is not None and corrected.question is not None:
            question = corrected.question
            return Ended("asked", f"{question.entity!r} may mean one of several values.", asked_for=question)
        return None

    def _kept(self, choice: ExecuteDataOp, attempt: Attempt) -> Attempt:
        """Keep a frame as a view; return the attempt, failed where that was not possible."""
        if attempt.frame is None:
            return attempt
        code = self._shop.keep(choice.view_name, choice.tool, choice.params, attempt.value)
        return attempt if code is None else Attempt(attempt.duration_ms, code=code, log_id=attempt.log_id)

    def _record_op(self, choice: ExecuteDataOp, attempt: Attempt, missing: Sequence[Missing]) -> None:
        frame, view = attempt.frame, self._shop.views.get(choice.view_name)
        self._record.step(
            "execute_data_op",
            StepResult(
                tool=choice.tool,
                params=self._params(choice),
                sentence=_sentence(f"view {choice.view_name} by {choice.tool}", attempt),
                success=attempt.code is None,
                code=attempt.code,
                column=attempt.column,
                duration_ms=attempt.duration_ms,
                rows=None if frame is None else len(frame),
                columns=None if frame is None else len(frame.columns),
                unique_values=unique_counts(view.facts) if view else None,
                intended=choice.intended,
                actual=None
                if frame is None
                else actual_state(choice.intended, frame, missing, self._shop.names),
                known={"viewName": choice.view_name, "log_id": attempt.log_id},
                view_files={view.kept_as: view.file_name} if view else {},
            ),
        )

    def _note(
        self, kind: StepType, choice: GatherInfo | ExecuteOutput, attempt: Attempt, *, rows: int | None = None,
        columns: int | None = None, known: Mapping[str, Any] | None = None, found: FoundEntities | None = None,
        file: Path | None = None,
    ) -> None:  # fmt: skip
        written = f"{file.parent.name}/{file.name}" if file else ""
        result = StepResult(
            tool=choice.tool, params=self._params(choice), sentence=_sentence(choice.tool, attempt),
            success=attempt.code is None, code=attempt.code, column=attempt.column, duration_ms=attempt.duration_ms,
            rows=rows, columns=columns, actual=_actual(found), known={**(known or {}), "log_id": attempt.log_id},
            run_files={written: self._shop.run_files[written]} if written else {},
        )  # fmt: skip
        self._record.step(kind, result)
        returned = kind_of(attempt.value) if attempt.code is None else None
        self._remember(
            choice, attempt, written, result=returned, row_count=rows, column_count=columns, found=found
        )

    def _remember(
        self, choice: GatherInfo | ExecuteDataOp | ExecuteOutput, attempt: Attempt, written: str = "", *,
        view: HeldView | None = None, **facts: Any,
    ) -> None:  # fmt: skip
        """Add a step to what later turns tell; it is finished now."""
        fields = msgspec.to_builtins(choice)
        fields["params"] = self._params(choice)
        step = StepFacts(
            len(self._steps) + 1, fields, attempt.code is None, attempt.duration_ms, attempt.code, attempt.ename,
            attempt.column, **facts,
        )  # fmt: skip
        self._steps.append(step)
        names = [] if step.found is None else [candidate.name for candidate in step.found.candidates]
        stand_ins = [name for name in names if isinstance(name, str) and self._shop.names.is_stand_in(name)]
        self._record.finished(
            DoneStep(
                step,
                None if view is None else view.kept_as,
                "" if view is None else text_form(view.value, view.texts),
                f"{self._record.run.run_id}/{written}" if written else None,
                self._shop.run_files.get(written),
                self._shop.keep_stand_ins(step.number, stand_ins),
            )
        )

    def _params(self, choice: GatherInfo | ExecuteDataOp | ExecuteOutput) -> dict[str, Any]:
        """Return a choice's parameters; none for a tool that is kept off the record."""
        return choice.params if self._shop.tools[choice.tool].logged else {}

    def _halt(self, rule: str, reason: str, found: int, cap: int) -> Ended:
        self._record.run.halt(Halt(rule, reason, found, cap), None, None, None)
        return Ended("halted", reason)


def _found_of(intended: Intended | None, missing: Sequence[Missing]) -> FoundEntities | None:
    """Say which of the intended entities a view has; None where none are intended, or nothing was made."""
    wanted = [] if intended is None else entities_of(intended)
    if not wanted:
        return None
    return FoundEntities(len(wanted), len(wanted) - len(missing), [entity for entity, _ in missing])


def _actual(found: FoundEntities | None) -> dict[str, Any] | None:
    """Return what was found, for the audit."""
    if found is None or not found.requested:
        return None
    return {"entities": {"requested": found.requested, "found": found.found, "missing": found.missing}}


def _sentence(what: str, attempt: Attempt) -> str:
    if attempt.code is None:
        return f"{what}: done in {attempt.duration_ms:,.0f} ms."
    column = f" in column {attempt.column!r}" if attempt.column else ""
    return f"{what}: failed with {attempt.code}{column}."

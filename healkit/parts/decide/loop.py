"""Loop of a decision: a turn, a choice, a step, until the end.

The chooser sees only metadata. Code checks each choice, runs it, compares the result with the intended state, and
records it before the next turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from healkit.errors import HealkitError, PolicyHalted
from healkit.parts.decide.asked import Asked, HeldView
from healkit.parts.decide.correction import Corrected, Corrector, Missing, compare, found_state
from healkit.parts.decide.decision import INTERRUPTED
from healkit.parts.decide.performing import Attempt, ChoiceRefused, Workshop, result_kind
from healkit.parts.decide.record import DecideRecord, StepResult, text_form
from healkit.parts.decide.records import (
    Choice,
    DecisionOutcome,
    DoneStep,
    EntityQuestion,
    ExecuteDataOp,
    ExecuteOutput,
    Finalize,
    GatherInfo,
    Resumed,
    StepFacts,
    Turn,
)
from healkit.parts.decide.telling import as_frame, tell
from healkit.parts.runs.contract import Halt, PolicyDefaults

#: The same choice that halts the decision when it is made that often, and the bytes of one.
REPEATED_MAX, CHOICE_MAX_BYTES = 10, 64 * 1024
_ToolChoice = GatherInfo | ExecuteDataOp | ExecuteOutput


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
        """Take over the turns and the steps of the resumed run; raise as `views.load` does."""
        for turn in resumed.turns:
            self._send(turn)
        for done in resumed.done:
            choice = done.step.choice
            if done.view is not None:
                operation = ExecuteDataOp(choice["tool"], choice["params"], view_name=choice["viewName"])
                self._shop.restore(operation, done.view, done.texts)
            if done.placeholders is not None:
                self._shop.restore_placeholders(done.placeholders)
            if done.step.differs or done.step.corrected is False:
                self._mark(choice["viewName"])
            self._steps.append(done.step)
            self._record.finished(done)
        self._problem = resumed.problem

    def go(self) -> Ended:
        """Take turns until the end; exceptions of the caller's own chooser pass through."""
        try:
            return self._turns()
        except PolicyHalted as halted:
            return Ended("halted", halted.message)
        except KeyboardInterrupt:
            return Ended("stopped", INTERRUPTED)

    def _turns(self) -> Ended:
        ended: Ended | None = None
        while ended is None:
            ended = self._stopped() or self._capped() or self._turn(self._facts())
        return ended

    def _turn(self, turn: Turn) -> Ended | None:
        """Ask for a choice and take it; return the ending, if the decision ends."""
        self._send(turn)
        try:
            chosen = self._asked.chooser.choose(turn)
        except HealkitError as error:
            return self._stopped() or Ended("halted", f"The chooser failed ({error.code}): {error.message}")
        if chosen is None:
            return Ended("stopped", self._why_stopped(turn.problem))
        try:
            choice = self._checked(chosen)
        except ChoiceRefused as refused:
            self._problem = str(refused)
            self._refuse(self._problem)
            again = turn.problem is not None
            return Ended("halted", f"Two choices in a row were invalid: {refused}") if again else None
        self._problem = None
        return self._take(choice)

    def _stopped(self) -> Ended | None:
        is_stopped = self._asked.options.stop.is_set()
        return Ended("stopped", "It was stopped by the caller.") if is_stopped else None

    def _capped(self) -> Ended | None:
        cap = (self._asked.options.policy or PolicyDefaults()).hard_cap_steps
        if len(self.sent) < cap:
            return None
        reason = f"The decision has taken {cap} turns, which is the limit."
        return self._halt("hard_cap_steps", reason, len(self.sent), cap)

    def _why_stopped(self, problem: str | None) -> str:
        reason = "The chooser made no further choice"
        if problem is not None:
            return f"{reason}: {problem}"
        if self._steps and not self._steps[-1].success:
            step = self._steps[-1]
            return f"{reason}: step {step.number}, {step.choice['tool']}, failed with {step.error_code}."
        return f"{reason}, and none was finalize."

    def last_turn(self) -> Turn:
        """Return the data for an analyst, recorded as a turn without tools."""
        self._tools, self._in_full = [], False
        turn = self._facts()
        self._send(turn)
        return turn

    def _facts(self) -> Turn:
        """Return the turn that the chooser gets now."""
        views = self._shop.views
        turn = Turn(
            self._asked.question, len(self.sent) + 1, [view.facts for view in views.values()], self._tools,
            list(self._steps), self._problem, list(self._asked.share),
        )  # fmt: skip
        return tell(turn, {name: view.origin for name, view in views.items()}, in_full=self._in_full)

    def _send(self, turn: Turn) -> None:
        """Keep a turn, before the chooser gets it."""
        self._record.sent(turn)
        self.sent.append(turn)

    def _mark(self, view_name: str) -> None:
        self.marked.append(f"The view {view_name} does not have the intended state.")

    def _checked(self, chosen: object) -> Choice:
        """Return a valid choice; raise `ChoiceRefused` with the reason."""
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
        views, tools = self._shop.views, self._shop.tools
        if isinstance(choice, Finalize):
            if (name := choice.final_view_name) not in views:
                raise ChoiceRefused(f"There is no view {name!r}. The views are: {', '.join(views)}.")
            return
        if choice.tool not in tools:
            raise ChoiceRefused(f"The tool {choice.tool!r} is not among the tools: {', '.join(tools)}.")
        self._shop.bound(choice.tool, choice.params)
        if isinstance(choice, GatherInfo) and (why := self._shop.effects_of(choice.tool)):
            raise ChoiceRefused(f"gather_info only reads, but {choice.tool} {why}.")
        if isinstance(choice, ExecuteDataOp) and choice.view_name in views:
            raise ChoiceRefused(
                f"The view {choice.view_name!r} already exists, and a view is written only once."
            )

    def _refuse(self, reason: str) -> None:
        sentence = f"The choice is invalid. {reason}"
        refused = StepResult(sentence=sentence, success=False, code="CHOICE_INVALID", known={"why": reason})
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
        name = choice.final_view_name
        view, sentence = self._shop.views[name], f"The result is the view {name}."
        result = StepResult(
            params={"finalViewName": name},
            sentence=sentence,
            rows=view.facts.row_count,
            columns=view.facts.column_count,
            known={"view": view.kept_as},
            **_of_view(view),
        )
        self._record.step("finalize", result, in_run=False)
        return Ended("finalized", sentence, name)

    def _gather(self, choice: GatherInfo) -> None:
        attempt = self._shop.perform(choice.tool, choice.params)
        found, size = None, dict[str, int | None](rows=None, columns=None)
        if attempt.code is None:
            frame = as_frame(attempt.value)
            if frame is not None:
                size = {"rows": len(frame), "columns": len(frame.columns)}
            elif isinstance(attempt.value, list | tuple | dict | set | frozenset):
                size["rows"] = len(attempt.value)
            found = self._shop.found(choice, attempt.value, len(self._steps) + 1)
        actual = found_state(found) if found is not None and found.requested else None
        self._record.step("gather_info", self._result(choice, attempt, choice.tool, **size, actual=actual))
        self._finished(
            choice, attempt, result=_kind(attempt), row_count=size["rows"], column_count=size["columns"], found=found
        )  # fmt: skip

    def _output(self, choice: ExecuteOutput) -> None:
        attempt = self._shop.perform(choice.tool, choice.params)
        file: Path | None = None
        if attempt.code is None:
            try:
                file = self._shop.write(choice.tool, attempt.value)
                attempt = attempt if file else attempt.failed("RESULT_NO_FILE")
            except OSError:
                attempt = attempt.failed("OUTPUT_NOT_WRITTEN")
        written = f"{file.parent.name}/{file.name}" if file else ""
        result = self._result(
            choice, attempt, choice.tool, rows=None, columns=None,
            known={"file": file.name} if file else {},
            run_files={written: self._shop.run_files[written]} if written else {},
        )  # fmt: skip
        self._record.step("execute_output", result)
        self._finished(choice, attempt, written, result=_kind(attempt))

    def _data_op(self, choice: ExecuteDataOp) -> Ended | None:
        attempt = self._shop.perform(choice.tool, choice.params)
        if attempt.code is None and not self._shop.is_view(choice.tool, choice.params, attempt):
            attempt = attempt.failed("RESULT_NO_FRAME")
        reached = compare(choice.intended, attempt.frame, self._shop.names)
        if not reached.missing:
            attempt = self._kept(choice, attempt)
        view = self._shop.views.get(choice.view_name)
        result = self._result(
            choice, attempt, f"view {choice.view_name} by {choice.tool}", intended=choice.intended,
            actual=None if attempt.frame is None else reached.actual, known={"viewName": choice.view_name},
            **(_of_view(view) if view else {}),
        )  # fmt: skip
        self._record.step("execute_data_op", result)
        corrected = self._corrected(choice, attempt, reached.missing)
        if corrected is not None and corrected.attempt is not None:
            attempt, reached = corrected.attempt, corrected.reached
        if view is None:
            attempt = self._kept(choice, attempt)
            view = self._shop.views.get(choice.view_name)
        if reached.gap or (corrected is not None and not corrected.applied):
            self._mark(choice.view_name)
        self._finished(
            choice, attempt, view=view,
            row_count=view.facts.row_count if view else None,
            column_count=view.facts.column_count if view else None,
            differs=reached.gap or None, found=reached.found,
            corrected=None if corrected is None else corrected.applied,
        )  # fmt: skip
        if corrected is not None and (question := corrected.question) is not None:
            return Ended("asked", f"{question.entity!r} may mean one of several values.", asked_for=question)
        return None

    def _corrected(
        self, choice: ExecuteDataOp, attempt: Attempt, missing: Sequence[Missing]
    ) -> Corrected | None:
        if missing:
            return self._corrector.resolve(choice, missing)
        return None if attempt.code is None else self._corrector.heal(choice, attempt)

    def _kept(self, choice: ExecuteDataOp, attempt: Attempt) -> Attempt:
        """Keep a frame as a view; return the attempt, which failed if that was not possible."""
        code = None if attempt.frame is None else self._shop.keep(choice, attempt)
        return attempt if code is None else attempt.failed(code)

    def _result(self, choice: _ToolChoice, attempt: Attempt, what: str, **fields: Any) -> StepResult:
        """Return the record of a tool that ran; `what` begins its sentence."""
        column = f" in column {attempt.column!r}" if attempt.column else ""
        failed = f"{what}: failed with {attempt.code}{column}."
        fields["known"] = {**fields.get("known", {}), "log_id": attempt.log_id}
        return StepResult(
            tool=choice.tool,
            params=self._shop.recorded(choice),
            sentence=f"{what}: done in {attempt.duration_ms:,.0f} ms." if attempt.code is None else failed,
            success=attempt.code is None,
            code=attempt.code,
            **{**attempt.measured(), **fields},
        )

    def _finished(
        self, choice: _ToolChoice, attempt: Attempt, written: str = "", *, view: HeldView | None = None, **facts: Any
    ) -> None:  # fmt: skip
        """Add a finished step to the later turns."""
        fields = {**msgspec.to_builtins(choice), "params": self._shop.recorded(choice)}
        step = StepFacts(
            len(self._steps) + 1, fields, attempt.code is None, attempt.duration_ms, attempt.code, attempt.ename,
            attempt.column, **facts,
        )  # fmt: skip
        self._steps.append(step)
        candidates = [] if step.found is None else step.found.candidates
        placeholders = [str(one.name) for one in candidates if self._shop.names.is_placeholder(one.name)]
        done = DoneStep(
            step,
            None if view is None else view.kept_as,
            "" if view is None else text_form(view),
            f"{self._record.run.run_id}/{written}" if written else None,
            self._shop.run_files.get(written),
            self._shop.keep_placeholders(step.number, placeholders),
        )
        self._record.finished(done)

    def _halt(self, rule: str, reason: str, found: int, cap: int) -> Ended:
        self._record.run.halt(Halt(rule, reason, found, cap), None, None, None)
        return Ended("halted", reason)


def _of_view(view: HeldView) -> dict[str, Any]:
    """Return the view's facts for the record of a step: distinct counts as far as they are known, and its file."""
    counts = {column.name: column.distinct for column in view.facts.columns if column.distinct is not None}
    return {"unique_values": counts, "view_files": {view.kept_as: view.file_name}}


def _kind(attempt: Attempt) -> str | None:
    return result_kind(attempt.value) if attempt.code is None else None

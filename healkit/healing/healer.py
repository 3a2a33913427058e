"""Healer: one healing from the request to the report.

The loop finds a patch; the healer decides on it. The chosen patch becomes a revision only with consent, runs once more
on the execution path, and is taken back if it fails there after all.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from healkit import values
from healkit.config import Config
from healkit.contracts.healing import VERDICTS, Attempt, Check, Outcome, PatchRequest
from healkit.contracts.runs import ExecutionMode, PolicyDefaults
from healkit.contracts.vault import VaultEntry
from healkit.errors import ConfigError, HealkitError, RevisionConflict
from healkit.healing.advisor import Advisor
from healkit.healing.advisors import advisors_for
from healkit.healing.case import gather
from healkit.healing.checks import TryCode, Validator
from healkit.healing.consent import decide
from healkit.healing.heal_audit import heal_steps
from healkit.healing.heal_record import HealRecord
from healkit.healing.loop import HealLoop, Listeners
from healkit.healing.report import HealReport, LoopResult, nothing_cures, report_of, total_cost
from healkit.healing.run_policy import HEAL_CAPS, RunPolicy
from healkit.healing.workbench import Bench
from healkit.runtime import views
from healkit.runtime.execution import Execution
from healkit.runtime.runs import Runs
from healkit.store.log_reader import Log
from healkit.store.requests import Requests
from healkit.store.vault import Vault

#: Gets the attempt that was chosen; True accepts it, False declines it, None leaves it waiting.
Confirm = Callable[[Attempt], "bool | None"]


#: Gets the advisor that is asked, and the number of candidates tried so far.
OnTried = Callable[[str, int], object]

#: Time that the validation may take beyond the search's budget.
_VALIDATION_S = 10.0


@dataclasses.dataclass(frozen=True)
class HealRequest:
    """Request for a healing: the tool, its advisors, the budget, and whether a cure may be kept without asking."""

    tool: str
    persona: str
    advisors: Sequence[str | Advisor]
    budget_s: float
    auto: bool
    log_id: int | None
    policy: PolicyDefaults | None
    dry_run: bool = False
    #: True if the caller named the advisors; a default advisor that is not set up is not worth a note.
    named: bool = True


@dataclasses.dataclass(frozen=True)
class Healer:
    """Healer with the parts that a healing needs; one for each `Healkit`.

    make_bench: makes the workbench for an entry, which tells its last argument how many candidates were tried.
    try_code: runs a candidate on the execution path; execute: runs the tool itself.
    """

    config: Config
    vault: Vault
    log: Log
    runs: Runs
    requests: Requests
    make_bench: Callable[[VaultEntry, float, threading.Event, Callable[[int], object]], Bench]
    try_code: Callable[[VaultEntry, str, Check], Execution]
    execute: Callable[[VaultEntry, Check], Execution]
    isolation: Callable[[], str]

    def heal(
        self,
        request: HealRequest,
        listeners: Listeners,
        confirm: Confirm | None,
        stop: threading.Event,
        on_tried: OnTried | None = None,
    ) -> HealReport:
        """Heal one tool.

        Raises `HealError` where nothing says that it fails, and `ConfigError` for a bad request.
        """
        if not request.budget_s > 0:
            raise ConfigError(f"budget_s={request.budget_s!r} must be greater than 0 seconds.")
        advisors, notes = advisors_for(request.advisors, self.config)
        with views.noting() as read:
            case, log_id = gather(self.vault, self.log, request.tool, request.persona, request.log_id)
        started = time.monotonic()
        policy = RunPolicy(request.policy, HEAL_CAPS)
        counter = _TriedCounter(on_tried)
        bench = self.make_bench(case.entry, request.budget_s, stop, counter.tried)
        if case.failure is not None and case.failure.code == "TOOL_TIMEOUT":
            bench.expect_hanging(case.failing)
        # With more time: a patch that is found in the last moment must still be validated.
        validating = bench.beside(_VALIDATION_S)
        listeners = _listeners_off_the_clock(dataclasses.replace(listeners, asking=counter.asking), bench)
        mode: ExecutionMode = "dry_run" if request.dry_run else "live"
        asked = {
            "persona": request.persona,
            "advisors": [advisor.name for advisor in advisors],
            "budget_s": request.budget_s,
            "auto": request.auto,
            "logged": case.entry.logged,
        }
        entry, is_clean = case.entry, not self.config.trace_raw
        audited = heal_steps(entry.tool_name, contents=entry.logged, is_clean=is_clean)
        with self.runs.begin(
            "heal", allow=request.tool, policy=policy, mode=mode, parameters=asked, audited=audited
        ) as run:
            record = HealRecord(run, policy, case, read)
            try_code: TryCode = functools.partial(self.try_code, case.entry)
            validator = Validator(case.entry, validating, try_code, stop)
            loop = HealLoop(self.vault, self.log, advisors, bench, validator, record, listeners, stop)
            found = loop.search(case, log_id, self.isolation())
            found = dataclasses.replace(found, notes=(*(notes if request.named else ()), *found.notes))
            confirm = _off_the_clock(confirm, bench)
            outcome, reason, known = self._decide(request, found, record, log_id, confirm)
            if outcome == "not_cured":
                reason = nothing_cures(found, bench.tried, request.budget_s, advisors)
            run.finish("completed", f"{outcome}: {reason}", record.state)
            known["cost"] = total_cost(found.attempts, advisors)
            return report_of(found, bench, run, outcome, reason, time.monotonic() - started, known)

    def _decide(
        self,
        request: HealRequest,
        found: LoopResult,
        record: HealRecord,
        log_id: int | None,
        confirm: Confirm | None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """Decide on the result; return outcome, reason, and what else the report knows."""
        best = found.best
        if found.outcome is not None:
            return found.outcome, found.reason, {}
        if best is None:
            return "not_cured", "", {}
        if request.dry_run:
            return "shown", "It is shown only, as was asked for; nothing was kept.", {}
        entry, step = found.case.entry, best.step_id or ""
        word = decide(entry.tool_name, best.verdict, best.patch.author, self.config, auto=request.auto)
        if word == "deny":
            record.decided(step, "denied")
            return (
                "denied",
                f"The policy forbids patches of {entry.tool_name!r} (heal_deny); it is shown only.",
                {},
            )
        if word == "allow":
            return self._apply(found, best, record, log_id)
        # On record before anyone is asked: no end of this process loses it.
        patch_request = self._request(entry, best, record, log_id)
        said = None if confirm is None else confirm(best)
        if said is None:
            return self._left_pending(patch_request, record, step)
        if not said:
            if patch_request.state == "pending":
                self.requests.decline(patch_request.id, "declined when it was proposed", in_run=True)
            record.decided(step, "declined")
            return "declined", "The patch was declined; nothing was changed.", {}
        return self._apply(found, best, record, log_id, patch_request)

    def _left_pending(
        self, request: PatchRequest, record: HealRecord, step: str
    ) -> tuple[Outcome, str, dict[str, Any]]:
        record.decided(step, request.state, request_id=request.id)
        known = {"request_id": request.id}
        if request.state != "pending":
            return "declined", f"The same patch was {request.state} before, as request {request.id}.", known
        return "pending", f"It is waiting for approval as request {request.id}.", known

    def _apply(
        self,
        found: LoopResult,
        best: Attempt,
        record: HealRecord,
        log_id: int | None,
        request: PatchRequest | None = None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """Make the patch a revision, with the answers as examples; take it back if it fails on the execution path."""
        entry, step = found.case.entry, best.step_id or ""
        try:
            kept = self._keep(entry, best, log_id, request)
        except RevisionConflict as conflict:
            request = self._request(entry, best, record, log_id)
            record.decided(step, request.state, request_id=request.id)
            record.error_raised(step, conflict)
            reason = f"The tool was changed meanwhile; the patch is kept as request {request.id}."
            return "pending", reason, {"request_id": request.id}
        record.decided(step, "kept", revision=kept.revision)
        for check in found.case.checks:
            if check.origin == "answered":
                self.vault.add_example(entry.tool_name, _example_of(check), persona=entry.persona)
        problem = self._problem_of(kept, found.case.checks)
        if not problem:
            said = VERDICTS[best.verdict].words
            return "kept", f"{kept.label} is active: {said}.", {"revision": kept.revision}
        known: dict[str, Any] = {"best": _refuted(best, problem)}
        if not record.recovering(step, problem):
            halt = record.run.halted
            why = "" if halt is None else f" {halt.reason}"
            reason = f"{kept.label} fails when it runs ({problem.rstrip('.')}), and stays active.{why}"
            return "halted", reason, {**known, "revision": kept.revision}
        back = self.vault.revert(
            entry.tool_name, entry.revision, persona=entry.persona, reason=f"rolled back: {problem}"
        )
        record.recovered(step, back.revision)
        return "rolled_back", f"It was taken back: {problem}", {**known, "revision": back.revision}

    def _keep(
        self, entry: VaultEntry, best: Attempt, log_id: int | None, request: PatchRequest | None
    ) -> VaultEntry:
        """Return the revision with the patch; a pending request for it is accepted in the same transaction."""
        if request is not None and request.state == "pending":
            accepted = self.requests.accept(request.id, in_run=True)
            return self.vault.get(entry.tool_name, entry.persona, revision=accepted.revision)
        return self.vault.patch(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            reason=f"{best.patch.reason} [{VERDICTS[best.verdict].words}]",
            author=best.patch.author,
            parent=entry.revision,
            motivating_log_id=log_id,
        )

    def _request(
        self, entry: VaultEntry, best: Attempt, record: HealRecord, log_id: int | None
    ) -> PatchRequest:
        """Add a request for the patch; one that was decided before keeps its state."""
        return self.requests.add(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            parent=entry.revision,
            advisor=best.patch.advisor,
            author=best.patch.author,
            reason=best.patch.reason,
            verdict=best.verdict,
            motivating_log_id=log_id,
            run_id=record.run.run_id,
        )

    def _problem_of(self, kept: VaultEntry, checks: Sequence[Check]) -> str:
        """Run the new revision once as any execution, on the failing input; return its problem, or an empty text."""
        chosen = next((c for c in checks if c.origin == "failing"), None) or next(
            (c for c in checks if not c.call and not c.raises), None
        )
        if chosen is None or kept.flags.get("side_effects"):
            return ""
        try:
            execution = self.execute(kept, chosen)
        except HealkitError as error:
            return error.message
        if execution.failure is not None:
            return execution.failure.summary
        if chosen.known and not values.meets(chosen.expected, execution.value):
            returned = values.text_of(values.kept(execution.value))
            return f"it returned {returned} where {values.text_of(chosen.expected)} is right."
        return ""


class _TriedCounter:
    """Tells the advisor that is asked and the number of tries, whenever one of them changes."""

    def __init__(self, tell: OnTried | None) -> None:
        self._tell, self._advisor, self._tried = tell, "", 0

    def asking(self, advisor: str) -> None:
        self._advisor = advisor
        self.tried(self._tried)

    def tried(self, count: int) -> None:
        self._tried = count
        if self._tell is not None:
            self._tell(self._advisor, count)


def _listeners_off_the_clock(listeners: Listeners, bench: Bench) -> Listeners:
    """Return the same listeners; a person's thinking time does not count against the budget."""
    return dataclasses.replace(
        listeners,
        ask=_off_the_clock(listeners.ask, bench),
        before_patch=_off_the_clock(listeners.before_patch, bench),
    )


def _off_the_clock(heard: Callable[..., Any] | None, bench: Bench) -> Callable[..., Any] | None:
    if heard is None:
        return None

    def off_the_clock(*about: Any) -> Any:
        with bench.off_the_clock():
            return heard(*about)

    return off_the_clock


def _refuted(best: Attempt, problem: str) -> Attempt:
    """Return an attempt that passed its checks and then failed on the execution path."""
    return msgspec.structs.replace(best, verdict="not_cured", why=f"it fails when it runs: {problem}")


def _example_of(check: Check) -> dict[str, Any]:
    right = (
        {"raises": check.raises} if check.raises else {"result": check.expected}
    )  # both in their kept form
    return {"arguments": check.arguments, **right}

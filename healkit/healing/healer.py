"""A healing from the request to the report.

The loop finds; here it is decided and done. What was chosen becomes a revision only with consent, is run once more on
the road that every execution takes, and is taken back where it fails there after all.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from healkit.config import Config
from healkit.contracts.heal_report import Outcome
from healkit.contracts.healing import VERDICTS, Attempt, Check, same_value
from healkit.contracts.requests import PatchRequest
from healkit.contracts.runs import PolicyDefaults
from healkit.errors import ConfigError, HealkitError, RevisionConflict
from healkit.healing.advisor import Advisor
from healkit.healing.advisors import advisors_for
from healkit.healing.case import gather
from healkit.healing.checks import TryCode, Validator
from healkit.healing.consent import decide
from healkit.healing.heal_record import HealRecord
from healkit.healing.loop import Listeners, Loop, SearchResult
from healkit.healing.report import HealReport
from healkit.healing.run_policy import HEAL_CAPS, RunPolicy
from healkit.healing.workbench import Bench
from healkit.runtime.execution import Execution
from healkit.runtime.runs import Runs
from healkit.store.entries import VaultEntry
from healkit.store.log import Log
from healkit.store.requests import Requests
from healkit.store.vault import Vault

#: Shown the attempt that was chosen; True accepts it, False declines it, None leaves it waiting.
Confirm = Callable[[Attempt], "bool | None"]


#: Gets the advisor that is asked, and how many candidates were tried so far.
OnTried = Callable[[str, int], object]

#: How much longer than the search the validation of what it has found may take.
_VALIDATION_S = 10.0


@dataclasses.dataclass(frozen=True)
class HealRequest:
    """What is asked for: which tool, who may advise, how long, and whether a cure may be kept without asking."""

    tool: str
    persona: str
    advisors: Sequence[str | Advisor]
    budget_s: float
    auto: bool
    log_id: int | None
    policy: PolicyDefaults | None
    dry_run: bool = False
    #: Whether the advisors were named; of those that stand there by default, one that is not set up is no news.
    named: bool = True


@dataclasses.dataclass(frozen=True)
class Healer:
    """The parts that a healing needs; one for each `Healkit`.

    make_bench: makes the workbench for an entry, which tells its last argument how many candidates were tried.
    try_code: runs a candidate on the road; execute: runs the tool itself.
    """

    config: Config
    vault: Vault
    log: Log
    runs: Runs
    requests: Requests
    make_bench: Callable[[VaultEntry, float, threading.Event, Callable[[int], object]], Bench]
    try_code: Callable[[VaultEntry, str, Check], Execution]
    execute: Callable[[VaultEntry, dict[str, Any]], Execution]
    isolation: Callable[[], str]

    def heal(
        self,
        wish: HealRequest,
        listeners: Listeners,
        confirm: Confirm | None,
        stop: threading.Event,
        on_tried: OnTried | None = None,
    ) -> HealReport:
        """Heal one tool; raises `HealError` where there is nothing to go by, and `ConfigError` for a wrong wish."""
        if not wish.budget_s > 0:
            raise ConfigError(f"budget_s={wish.budget_s!r} must be greater than 0 seconds.")
        advisors, notes = advisors_for(wish.advisors, self.config)
        notes = notes if wish.named else []
        case, log_id = gather(self.vault, self.log, wish.tool, wish.persona, wish.log_id)
        started = time.monotonic()
        policy = RunPolicy(wish.policy, HEAL_CAPS)
        counted = _Counted(on_tried)
        bench = self.make_bench(case.entry, wish.budget_s, stop, counted.tried)
        # What an advisor finds in its last moment is still to be validated.
        if case.failure is not None and case.failure.code == "TOOL_TIMEOUT":
            bench.expect_hanging(case.failing)
        validating = bench.beside(_VALIDATION_S)
        listeners = _unhurried(dataclasses.replace(listeners, asking=counted.asking), bench)
        with self.runs.begin(
            "heal", allow=wish.tool, policy=policy, mode="dry_run" if wish.dry_run else "live"
        ) as run:
            record = HealRecord(run, policy, case)
            try_code: TryCode = lambda code, check: self.try_code(case.entry, code, check)  # noqa: E731 - bound here
            loop = Loop(
                self.vault,
                self.log,
                advisors,
                bench,
                Validator(case.entry, validating, try_code, stop),
                record,
                listeners,
                stop,
            )
            found = loop.look(case, log_id, self.isolation())
            found = dataclasses.replace(found, notes=(*notes, *found.notes))
            outcome, reason, known = self._decide(wish, found, record, log_id, _unhurried_one(confirm, bench))
            run.finish("completed", f"{outcome}: {reason}")
            return HealReport(
                tool_name=case.entry.tool_name,
                persona=case.entry.persona,
                label=case.entry.label,
                outcome=outcome,
                reason=reason,
                diagnosis=found.diagnosis.sentence,
                attempts=found.attempts,
                best=found.best,
                checks=found.case.checks,
                duration_s=time.monotonic() - started,
                think_time_s=bench.think_time_s,
                candidates_tried=bench.tried + len(found.attempts),
                run_id=run.run_id,
                folder=run.folder,
                questions=found.questions,
                notes=found.notes,
                cost=_summed(found.attempts, advisors),
                **known,
            )

    def _decide(
        self,
        wish: HealRequest,
        found: SearchResult,
        record: HealRecord,
        log_id: int | None,
        confirm: Confirm | None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """What becomes of what was found: outcome, reason, and what else the report knows."""
        best = found.best
        if found.outcome is not None:
            return found.outcome, found.reason, {}
        if best is None:
            return "not_cured", _nothing_cures(found), {}
        if wish.dry_run:
            return "shown", "It is shown only, as was asked for; nothing was kept.", {}
        entry, step = found.case.entry, best.step_id or ""
        word = decide(entry.tool_name, best.verdict, best.patch.author, self.config, auto=wish.auto)
        if word == "deny":
            record.decided(step, "denied")
            return (
                "denied",
                f"The policy forbids patches of {entry.tool_name!r} (heal_deny); it is shown only.",
                {},
            )
        if word == "allow":
            return self._apply(found, best, record, log_id)
        # On record before anybody is asked, so that no end of this process loses it.
        request = self._request(entry, best, record, log_id)
        said = None if confirm is None else confirm(best)
        if said is None:
            return self._waits(request, record, step)
        if not said:
            if request.state == "pending":
                self.requests.decline(request.id, "declined when it was proposed")
            record.decided(step, "declined")
            return "declined", "The patch was declined; nothing was changed.", {}
        return self._apply(found, best, record, log_id, request)

    def _waits(
        self, request: PatchRequest, record: HealRecord, step: str
    ) -> tuple[Outcome, str, dict[str, Any]]:
        record.decided(step, request.state, request_id=request.id)
        known = {"request_id": request.id}
        if request.state != "pending":
            return "declined", f"The same patch was {request.state} before, as request {request.id}.", known
        return "pending", f"It waits for consent as request {request.id}.", known

    def _apply(
        self,
        found: SearchResult,
        best: Attempt,
        record: HealRecord,
        log_id: int | None,
        request: PatchRequest | None = None,
    ) -> tuple[Outcome, str, dict[str, Any]]:
        """Make it a revision, with the answers as examples; take it back where it fails on the road after all."""
        entry, step = found.case.entry, best.step_id or ""
        try:
            kept = self._keep(entry, best, log_id, request)
        except RevisionConflict as conflict:
            request = self._request(entry, best, record, log_id)
            record.decided(step, request.state, request_id=request.id)
            record.stumbled(step, conflict)
            reason = f"Somebody changed the tool meanwhile; the patch is kept as request {request.id}."
            return "pending", reason, {"request_id": request.id}
        record.decided(step, "kept", revision=kept.revision)
        for check in found.case.checks:
            if check.origin == "answered":
                self.vault.add_example(entry.tool_name, _example_of(check), persona=entry.persona)
        problem = self._fails_on_the_road(kept, found.case.checks)
        if problem and record.recovering(step, problem):
            back = self.vault.revert(
                entry.tool_name, entry.revision, persona=entry.persona, reason=f"rolled back: {problem}"
            )
            record.recovered(step, back.revision)
            return "rolled_back", f"It was taken back: {problem}", {"revision": back.revision}
        return "kept", f"{kept.label} is active: {VERDICTS[best.verdict]}.", {"revision": kept.revision}

    def _keep(
        self, entry: VaultEntry, best: Attempt, log_id: int | None, request: PatchRequest | None
    ) -> VaultEntry:
        """The revision with the patch; a request that waits for it is accepted with it, in one transaction."""
        if request is not None and request.state == "pending":
            accepted = self.requests.accept(request.id)
            return self.vault.get(entry.tool_name, entry.persona, revision=accepted.revision)
        return self.vault.patch(
            entry.tool_name,
            best.patch.code,
            persona=entry.persona,
            reason=f"{best.patch.reason} [{VERDICTS[best.verdict]}]",
            author=best.patch.author,
            parent=entry.revision,
            motivating_log_id=log_id,
        )

    def _request(
        self, entry: VaultEntry, best: Attempt, record: HealRecord, log_id: int | None
    ) -> PatchRequest:
        """Let the patch wait for the user's word; one that was decided before is what it was."""
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

    def _fails_on_the_road(self, kept: VaultEntry, checks: Sequence[Check]) -> str:
        """Run the new revision once as any execution, on what failed; what is wrong with it, or nothing."""
        chosen = next((c for c in checks if c.origin == "failing"), None) or next(
            (c for c in checks if not c.call and not c.raises), None
        )
        if chosen is None or kept.flags.get("side_effects"):
            return ""
        try:
            execution = self.execute(kept, chosen.arguments)
        except HealkitError as error:
            return error.message
        if execution.failure is not None:
            return execution.failure.summary
        if chosen.known and not same_value(chosen.expected, execution.value):
            return f"it returned {execution.value!r} where {chosen.expected!r} is right."
        return ""


class _Counted:
    """Tells who is asked and how much was tried, whenever one of them changes."""

    def __init__(self, tell: OnTried | None) -> None:
        self._tell, self._advisor, self._tried = tell, "", 0

    def asking(self, advisor: str) -> None:
        self._advisor = advisor
        self.tried(self._tried)

    def tried(self, count: int) -> None:
        self._tried = count
        if self._tell is not None:
            self._tell(self._advisor, count)


def _unhurried(listeners: Listeners, bench: Bench) -> Listeners:
    """The same listeners; the time in which a person thinks is nobody's budget."""
    return dataclasses.replace(
        listeners,
        ask=_unhurried_one(listeners.ask, bench),
        before_patch=_unhurried_one(listeners.before_patch, bench),
    )


def _unhurried_one(heard: Callable[..., Any] | None, bench: Bench) -> Callable[..., Any] | None:
    if heard is None:
        return None

    def unhurried(*about: Any) -> Any:
        with bench.off_the_clock():
            return heard(*about)

    return unhurried


def _example_of(check: Check) -> dict[str, Any]:
    right = {"raises": check.raises} if check.raises else {"result": check.expected}
    return {"arguments": check.arguments, **right}


def _nothing_cures(found: SearchResult) -> str:
    if not found.attempts:
        return "Nobody who was asked had a patch; it may lack code that no rule can recover."
    if len(found.attempts) == 1:
        return "The only patch that was proposed does not pass every check."
    return f"None of {len(found.attempts)} patches passes every check."


def _summed(attempts: Sequence[Attempt], advisors: Sequence[Advisor]) -> dict[str, float]:
    """What all of it took, and what was asked in vain with it."""
    total: dict[str, float] = {}
    unclaimed = [getattr(advisor, "unclaimed", {}) for advisor in advisors]
    for cost in (*(attempt.patch.cost for attempt in attempts), *unclaimed):
        for unit, amount in cost.items():
            total[unit] = total.get(unit, 0.0) + amount
    return total

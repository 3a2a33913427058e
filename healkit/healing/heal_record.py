"""Record of a healing: the events of its run folder.

One method for each thing that the loop does, called at that moment. The choice of the contract's event types is all in
this file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from healkit.contracts.events import ActionSpec, EventType, error_object
from healkit.contracts.healing import Attempt, Check, CheckResult, Patch
from healkit.contracts.records import utc_now
from healkit.contracts.run_policy import Observation, PolicyVerdict
from healkit.contracts.signature import StateSignature, digest, sign
from healkit.errors import HealkitError
from healkit.healing.advisor import Case
from healkit.healing.diagnosis import Diagnosis
from healkit.healing.run_policy import RunPolicy
from healkit.runtime.runs import OpenRun
from healkit.store.entries import code_hash

#: Advisors that repeat themselves when they are stuck; others enumerate, and their similar failures are no loop.
_MAY_LOOP = {"model", "agent", "person"}


class HealRecord:
    """Writes one healing into its run, and asks its policy. `policy` is the run's own."""

    def __init__(self, run: OpenRun, policy: RunPolicy, case: Case) -> None:
        self.run = run
        self._case = case
        self._policy = policy
        failing = case.failing[0].arguments if case.failing else {}
        self._arguments: dict[str, Any] = failing

    def observed(self, log_id: int | None, fingerprint: str | None) -> str:
        """Record the start: the failure, the code, the checks; return the step's id."""
        entry, failure = self._case.entry, self._case.failure
        step = self.run.admit(entry.tool_name)
        before = self._sign(entry.code_hash, fingerprint)
        known = {"phase": "before", "log_id": log_id, "same_state_count": 0, "total": len(self._case.checks)}
        self.run.append("observation_captured", step_id=step, before=before, metadata=known)
        pieces: list[Any] = [("state_before", _state(self._case, before)), ("code", entry.code)]
        pieces += [("arguments", self._arguments)]
        if failure is not None:
            error = error_object(failure.code, "observation", failure.summary, utc_now())
            self.run.append("error_raised", step_id=step, before=before, error=error)
            pieces.append(
                (
                    "failure",
                    {"ename": failure.ename, "evalue": failure.evalue, "traceback": failure.traceback},
                )
            )
        self.run.keep(pieces, step_id=step, before=before)
        return step

    def inspected(self, step: str, diagnosis: Diagnosis) -> None:
        """Record the diagnosis."""
        self.run.append("inspection_started", step_id=step)
        found = {"kind": diagnosis.kind, "line": diagnosis.line, "sentence": diagnosis.sentence}
        self.run.append("inspection_finished", step_id=step, result=found)

    def measured(self, step: str, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Record each check's result with the code as it is."""
        self._asserted(step, checks, results)

    def proposed(self, patch: Patch) -> str:
        """Record an advisor's patch; return the step's id, or raise `PolicyHalted` where no further step may begin."""
        entry = self._case.entry
        step = self.run.admit(entry.tool_name)
        known = {
            "author": patch.author,
            "advisor": patch.advisor,
            "base_revision": entry.revision,
            "base_code_hash": entry.code_hash,
            "reason": patch.reason,
        }
        self.run.append("proposal_received", step_id=step, metadata=known)
        self.run.keep([("proposal", patch.code)], step_id=step)
        return step

    def refused(self, step: str, patch: Patch, error: HealkitError) -> None:
        """Record a patch that cannot be run as this tool at all."""
        fault = error_object(str(error.code), "proposal", error.message, utc_now())
        self.run.append("proposal_rejected", step_id=step, error=fault, metadata={"verdict": "not_cured"})
        self._observe(step, patch, str(error))

    def validating(self, step: str, patch: Patch, timeout_s: float, isolation: str | None, mode: str) -> None:
        """Record that a patch's validation begins."""
        entry = self._case.entry
        spec = ActionSpec(
            kind="validate",
            tool_name=entry.tool_name,
            persona=entry.persona,
            revision=None,
            code_hash=code_hash(patch.code),
            arguments=self._arguments,
            mode=mode,
            timeout_s=timeout_s,
            isolation=isolation,
        )
        self.run.append("action_compiled", step_id=step, action_spec=spec)
        self.run.append(
            "preconditions_checked", step_id=step, result={"checks": {"code_parses": True, "isolation": True}}
        )
        self.run.append("action_started", step_id=step)

    def validated(self, step: str, attempt: Attempt, checks: Sequence[Check]) -> None:
        """Record each check's outcome and the verdict; the policy may halt the run."""
        self._asserted(step, checks, attempt.results)
        came = {
            "passed": attempt.passed,
            "total": attempt.total,
            "duration_ms": round(attempt.duration_s * 1000, 1),
        }
        self.run.append("action_executed", step_id=step, result=came)
        plausible = attempt.verdict != "not_cured"
        met = {"checks": {"all_passed": plausible}, "verdict": attempt.verdict}
        self.run.append("postconditions_checked", step_id=step, result=met)
        known = {"verdict": attempt.verdict, "why": attempt.why}
        event: EventType = "proposal_accepted" if plausible else "proposal_rejected"
        self.run.append(event, step_id=step, metadata=known)
        failed = next((r.failure or str(r.value) for r in attempt.results if r.outcome != "passed"), None)
        self._observe(step, attempt.patch, failed)

    def answered(self, step: str, attempt: Attempt, check: Check) -> None:
        """Record the outcome of a check that a person's answer added, and the verdict with it."""
        self._asserted(step, [check], attempt.results[-1:])
        event: EventType = "proposal_rejected" if attempt.verdict == "not_cured" else "proposal_accepted"
        self.run.append(event, step_id=step, metadata={"verdict": attempt.verdict, "why": attempt.why})

    def retrying(self, step: str, action: str, error_code: str, attempt: int) -> PolicyVerdict:
        """Ask the policy for a retry of what failed through no fault of the patch; record its answer."""
        verdict = self._policy.retry(action, error_code)
        if verdict.granted:
            known = {"code": error_code, "count": attempt, "wait_ms": verdict.wait_ms}
            self.run.append("retry_scheduled", step_id=step, metadata=known)
        return verdict

    def waited(self, step: str, wait_ms: int) -> None:
        """Record that the pause before a retry is over."""
        self.run.append("backoff_applied", step_id=step, metadata={"wait_ms": wait_ms})

    def recovering(self, step: str, why: str) -> bool:
        """Ask the policy whether a kept patch may be taken back; record it if so."""
        granted = self._policy.recovery().granted
        if granted:
            self.run.append("recovery_started", step_id=step, metadata={"action": "revert", "why": why})
        return granted

    def recovered(self, step: str, revision: int) -> None:
        """Record that it was taken back."""
        self.run.append(
            "recovery_finished", step_id=step, result={"revision": revision, "status": "reverted"}
        )

    def asking(self, call: str, choices: Sequence[str]) -> None:
        """Record a question, before the person is waited for."""
        self.run.append(
            "inspection_started", metadata={"kind": "question", "call": call, "choices": list(choices)}
        )

    def replied(self, call: str, answer: str, think_time_s: float) -> None:
        """Record the answer, empty for none, and how long the person was waited for."""
        sentence = f"{call} is {answer}." if answer else f"Nobody could say what is right for {call}."
        known = {"kind": "question", "think_time_ms": round(think_time_s * 1000, 1), "line": None}
        self.run.append("inspection_finished", result={**known, "sentence": sentence})

    def decided(self, step: str, action: str, **known: Any) -> None:
        """Record the person's or the policy's decision on the chosen patch."""
        event: EventType = "proposal_rejected" if action in ("declined", "denied") else "proposal_accepted"
        self.run.append(event, step_id=step, metadata={"action": action, **known})

    def error_raised(self, step: str | None, error: HealkitError) -> None:
        """Record that an advisor or a part of the loop failed; the loop goes on."""
        fault = error_object(str(error.code), "proposal", error.message, utc_now(), severity="warning")
        self.run.append("error_raised", step_id=step, error=fault)

    def _asserted(self, step: str, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        for number, (check, result) in enumerate(zip(checks, results, strict=True), 1):
            came: dict[str, Any] = {"check": number, "origin": check.origin, "outcome": result.outcome}
            came |= {"call": check.call} if check.call else {"arguments": check.arguments}
            if check.known:
                came["wanted"] = check.raises or check.expected
            if result.outcome in ("passed", "wrong") and not result.failure:
                came["got"] = result.value
            elif result.failure:
                came["error"] = result.failure
            self.run.append("assert_checked", step_id=step, result=came)

    def _observe(self, step: str, patch: Patch, failure: str | None) -> None:
        """Record the state after an attempt; the policy judges it and may end the run."""
        mark = None if failure is None else digest("failure", failure)
        after = self._sign(code_hash(patch.code), mark)
        self.run.keep([("state_after", _state(self._case, after))], step_id=step, after=after)
        alike = mark if patch.author in _MAY_LOOP else None
        self.run.observe(Observation(after.state_key, failure is not None, alike), step, None, after)

    def _sign(self, digest_of_code: str, fingerprint: str | None) -> StateSignature:
        entry = self._case.entry
        clean = self.run.cleaner.clean(json.loads(json.dumps(self._arguments)), limit_bytes=1 << 30).value
        return sign(
            tool_name=entry.tool_name,
            persona=entry.persona,
            code_hash=digest_of_code,
            arguments=clean,
            fingerprint=fingerprint,
        )


def _state(case: Case, signature: StateSignature) -> dict[str, Any]:
    """Return the partial state: ids and hashes only."""
    entry = case.entry
    return {
        "tool_name": entry.tool_name,
        "persona": entry.persona,
        "revision": entry.revision,
        "code_hash": entry.code_hash,
        "state_key": signature.state_key,
    }

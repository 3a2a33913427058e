"""Record of a healing: run events and audit entries.

There is one method for each action of the loop, called at that moment. The choice of the contract's event types is all
in this file. An audit entry is made from a written event, so run folder and audit cannot disagree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from healkit.core.contracts.execution import utc_now
from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.crossing import values
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.store.entries import code_hash
from healkit.errors import HealkitError
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.case import Diagnosis
from healkit.parts.heal.records import VERDICTS, Attempt, Patch
from healkit.parts.runs.audit_records import AuditMetadata
from healkit.parts.runs.contract import (
    SCHEMA_VERSION,
    ActionSpec,
    ErrorObject,
    EvidenceRef,
    Observation,
    PolicyVerdict,
    Severity,
    Stage,
    StateSignature,
    TraceEvent,
    condition,
    details_of,
    digest,
    error_object,
    sign,
)
from healkit.parts.runs.run_audit import Tell, Told
from healkit.parts.runs.run_policy import RunPolicy
from healkit.parts.runs.runs import OpenRun, tags_of
from healkit.plain_text import count

#: Advisors that repeat themselves when they are stuck; others enumerate, and their similar failures are not a loop.
_MAY_LOOP = {"model", "agent", "person"}
#: Checks before a patch is validated, and after.
_PRECONDITIONS, _POSTCONDITIONS = ("code_parses", "isolation"), ("all_passed",)
#: Findings of an inspection from which the healing can go on.
_FOUND = {"fixable", "answered"}
#: Decision against a patch that can be run → the code of its error, and what is said.
_REJECTED = {
    "declined": ("PATCH_DECLINED", "A person declined the patch."),
    "denied": ("PATCH_DENIED", "The policy forbids patches of this tool."),
}


class HealRecord:
    """Writes one healing into its run, and asks its policy. `policy` is the run's own.

    `state` is the current state of the tool in the healing.

    read: The views that the case was made of, by name, with their files' names.
    """

    def __init__(self, run: OpenRun, policy: RunPolicy, case: Case, read: Mapping[str, str]) -> None:
        self.run = run
        self._read = dict(read)
        self._case = case
        self._policy = policy
        failing = case.failing[0].arguments if case.failing else {}
        self._arguments: dict[str, Any] = failing
        mark = None if case.failure is None else fingerprint(case.failure)
        self._before = self.state = self._sign(case.entry.code_hash, mark)
        self._after: dict[str, StateSignature] = {}
        self._inspected: str | None = None
        self._judged_as: dict[str, str] = {}

    def observed(self, log_id: int | None) -> str:
        """Record the start: the failure, the code, the checks; return the step's id."""
        entry, failure = self._case.entry, self._case.failure
        step = self.run.admit(entry.tool_name)
        before = self._before
        self.run.learn(self._arguments, *(failure.named if failure is not None else ()))
        metadata: dict[str, Any] = {"phase": "before", "log_id": log_id, "total": len(self._case.checks)}
        metadata["policy"] = self.run.policy_facts(before.state_key)
        metadata |= {"view_files": self._read} if self._read else {}
        self.run.append("observation_captured", step_id=step, before=before, metadata=metadata)
        pieces: list[Any] = [("state_before", _state(self._case, before)), ("code", entry.code)]
        pieces += [("arguments", self._arguments)]
        if failure is not None:
            frame = failure.tool_frame
            details = {"ename": failure.ename, "line": frame.lineno if frame else None, "log_id": log_id}
            error = _fault(failure.code, failure.summary, "observation", details)
            self.run.append("error_raised", step_id=step, before=before, error=error)
            pieces.append(
                (
                    "failure",
                    {"ename": failure.ename, "evalue": failure.evalue, "traceback": failure.traceback},
                )
            )
        self._inspected = _uri(self.run.keep(pieces, step_id=step, before=before), "code")
        return step

    def inspected(self, step: str, diagnosis: Diagnosis) -> None:
        """Record the diagnosis."""
        self._inspect(step, {"kind": "diagnosis"})
        result = {"kind": diagnosis.kind, "line": diagnosis.line, "sentence": diagnosis.sentence}
        report = {**result, "function": diagnosis.function, "why_not": diagnosis.why_not}
        finding = "fixable" if diagnosis.fixable else "not_fixable"
        self._inspection_ends(step, "failure_catalogue", finding, report, result)

    def measured(self, step: str, checks: Sequence[Check], results: Sequence[CheckResult]) -> None:
        """Record each check's result with the unpatched code."""
        self._asserted(step, checks, results, None)

    def proposed(self, patch: Patch) -> str:
        """Record an advisor's patch; return the step's id, or raise `PolicyHalted` if no further step may begin."""
        entry = self._case.entry
        step = self.run.admit(entry.tool_name)
        metadata = {
            "author": patch.author,
            "advisor": patch.advisor,
            "base_revision": entry.revision,
            "base_code_hash": entry.code_hash,
            "reason": patch.reason,
            **self.run.proposal(patch.advisor),
        }
        self.run.append("proposal_received", step_id=step, metadata=metadata)
        self.run.keep([("proposal", patch.code)], step_id=step)
        return step

    def refused(self, step: str, patch: Patch, error: HealkitError) -> None:
        """Record a patch that cannot run as this tool at all."""
        fault = _fault(str(error.code), error.message, "proposal", details_of(error))
        self.run.append("proposal_rejected", step_id=step, error=fault, metadata={"verdict": "not_cured"})
        self._ended_in(step, patch, str(error))
        self._observe(step, patch, str(error))

    def validating(
        self,
        step: str,
        patch: Patch,
        timeout_s: float,
        isolation: str | None,
        mode: str,
        checks: Sequence[Check],
    ) -> None:
        """Record that a patch's validation begins.

        checks: The checks that will run.
        """
        entry = self._case.entry
        spec = ActionSpec(
            schema_version=SCHEMA_VERSION,
            action_id=f"{step}.validate",
            kind="validate",
            tool_name=entry.tool_name,
            persona=entry.persona,
            revision=None,
            code_hash=code_hash(patch.code),
            arguments=self._arguments,
            mode=mode,
            timeout_s=timeout_s,
            isolation=isolation,
            criticality="critical" if entry.acts else "normal",
            preconditions=[condition("code_parses"), condition("isolation", isolation=isolation)],
            postconditions=[condition(name) for name in _POSTCONDITIONS],
            assertions=[
                condition("check", check=number, origin=check.origin)
                for number, check in enumerate(checks, 1)
            ],
            tags=tags_of(entry),
        )
        self.run.append("action_compiled", step_id=step, before=self._before, action_spec=spec)
        result = {"checks": dict.fromkeys(_PRECONDITIONS, True)}
        self.run.append("preconditions_checked", step_id=step, before=self._before, result=result)
        self.run.append("action_started", step_id=step, before=self._before)

    def validated(self, step: str, attempt: Attempt, checks: Sequence[Check]) -> None:
        """Record each check's outcome and the verdict; the policy may halt the run."""
        failed = next((r.failure or str(r.value) for r in attempt.results if r.outcome != "passed"), None)
        after = self._ended_in(step, attempt.patch, failed)
        self._asserted(step, checks, attempt.results, after)
        result = {
            "passed": attempt.passed,
            "total": attempt.total,
            "duration_ms": round(attempt.duration_s * 1000, 1),
        }
        self.run.append("action_executed", step_id=step, before=self._before, after=after, result=result)
        plausible = attempt.plausible
        met = {"checks": dict.fromkeys(_POSTCONDITIONS, plausible), "verdict": attempt.verdict}
        self.run.append("postconditions_checked", step_id=step, before=self._before, after=after, result=met)
        self._judged(step, attempt)
        self._observe(step, attempt.patch, failed)

    def answered(self, step: str, attempt: Attempt, check: Check) -> None:
        """Record the outcome of a check that a person's answer added, and the verdict with it."""
        self._asserted(step, [check], attempt.results[-1:], self._after.get(step))
        self._judged(step, attempt)

    def concluded(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Record and return the attempts whose verdict has changed since: patches disagree, or were not compared."""
        changed = []
        for attempt in attempts:
            step = attempt.step_id
            if step is not None and self._judged_as.get(step, attempt.verdict) != attempt.verdict:
                self._judged(step, attempt)
                changed.append(attempt)
        return changed

    def retrying(self, step: str, action: str, error_code: str, attempt: int) -> PolicyVerdict:
        """Ask the policy for a retry of a failure that the patch did not cause; record its answer."""
        verdict = self._policy.retry(action, error_code)
        if verdict.granted:
            metadata = {"code": error_code, "count": attempt, "wait_ms": verdict.wait_ms}
            self.run.append("retry_scheduled", step_id=step, before=self._before, metadata=metadata)
        return verdict

    def waited(self, step: str, wait_ms: int) -> None:
        """Record that the pause before a retry is over."""
        self.run.append("backoff_applied", step_id=step, before=self._before, metadata={"wait_ms": wait_ms})

    def recovering(self, step: str, why: str) -> bool:
        """Ask the policy whether a kept patch may be rolled back; record its answer."""
        verdict = self._policy.recovery()
        if verdict.halt is not None:
            self.run.halt(verdict.halt, step, self.state, None)
        else:
            metadata = {"action": "revert", "why": why}
            self.run.append("recovery_started", step_id=step, before=self.state, metadata=metadata)
        return verdict.granted

    def recovered(self, step: str, revision: int) -> None:
        """Record that it was rolled back."""
        result = {"revision": revision, "status": "reverted"}
        self.run.append(
            "recovery_finished", step_id=step, before=self.state, after=self._before, result=result
        )
        self.state = self._before

    def asking(self, call: str, choices: Sequence[str]) -> None:
        """Record a question, before waiting for the person."""
        self._inspect(None, {"kind": "question", "call": call, "choices": list(choices)})

    def replied(self, call: str, answer: str, think_time_s: float) -> None:
        """Record the answer, empty for none, and the waiting time."""
        sentence = f"{call} is {answer}." if answer else f"No answer for {call}."
        facts = {"kind": "question", "think_time_ms": round(think_time_s * 1000, 1), "line": None}
        result = {**facts, "sentence": sentence}
        report = {"kind": "question", "call": call, "answer": answer, "sentence": sentence}
        self._inspection_ends(None, "person", "answered" if answer else "unanswered", report, result)

    def decided(self, step: str, action: str, **known: object) -> None:
        """Record the person's or the policy's decision on the chosen patch."""
        after = self._after.get(step)
        if action == "kept" and after is not None:
            self.state = after
        error = (
            _fault(*_REJECTED[action], "policy", {"action": action, **known}) if action in _REJECTED else None
        )
        self._judge(step, error, {"action": action, **known})

    def error_raised(self, step: str | None, error: HealkitError) -> None:
        """Record that an advisor or a part of the loop failed; the loop continues."""
        fault = _fault(str(error.code), error.message, "proposal", details_of(error), severity="warning")
        self.run.append("error_raised", step_id=step, error=fault)

    def _inspect(self, step: str | None, known: dict[str, Any]) -> None:
        known = {**known, "file_ref": self._inspected}
        self.run.append("inspection_started", step_id=step, before=self._before, metadata=known)

    def _inspection_ends(
        self, step: str | None, profile: str, finding: str, report: dict[str, Any], found: dict[str, Any]
    ) -> None:
        """Record an inspection's result; its report is evidence, and the event refers to it."""
        refs = self.run.keep([("report", report)], step_id=step, before=self._before)
        metadata = {
            "status": "ok" if finding in _FOUND else "failed",
            "finding": finding,
            "file_ref": self._inspected,
            "doc_hash": self._case.entry.code_hash,
            "criteria_profile": profile,
            "report_ref": _uri(refs, "report"),
        }
        self.run.append(
            "inspection_finished",
            step_id=step,
            before=self._before,
            result=found,
            evidence=refs,
            metadata=metadata,
        )

    def _judged(self, step: str, attempt: Attempt) -> None:
        """Record the results of a patch's checks."""
        error = None
        if not attempt.plausible:
            message = attempt.why or "It does not pass every check."
            numbers = {"passed": attempt.passed, "total": attempt.total}
            code = "PATCH_UNDECIDED" if attempt.verdict == "undecided" else "PATCH_NOT_CURED"
            error = _fault(code, message, "postconditions", numbers)
        self._judged_as[step] = attempt.verdict
        doubt = attempt.patch.doubt if attempt.verdict == "unproven" else ""
        self._judge(step, error, {"verdict": attempt.verdict, "why": attempt.why or doubt})

    def _judge(self, step: str, error: ErrorObject | None, known: dict[str, Any]) -> None:
        self.run.append(
            "proposal_accepted" if error is None else "proposal_rejected", step_id=step, before=self._before,
            after=self._after.get(step), error=error, metadata=known,
        )  # fmt: skip

    def _asserted(
        self,
        step: str,
        checks: Sequence[Check],
        results: Sequence[CheckResult],
        after: StateSignature | None,
    ) -> None:
        for number, (check, result) in enumerate(zip(checks, results, strict=True), 1):
            assertion: dict[str, Any] = {"check": number, "origin": check.origin, "outcome": result.outcome}
            assertion |= (
                {"call": check.told} if check.call else {"arguments": values.shown_value(check.arguments)}
            )
            if check.known:
                assertion["wanted"] = check.raises or values.shown_value(check.expected)
            if result.outcome in ("passed", "wrong") and not result.failure:
                assertion["got"] = values.shown_value(result.value)
            elif result.failure:
                assertion["error"] = result.failure
            self.run.append(
                "assert_checked", step_id=step, before=self._before, after=after, result=assertion
            )

    def _ended_in(self, step: str, patch: Patch, failure: str | None) -> StateSignature:
        """Sign and remember the state after an attempt."""
        after = self._sign(code_hash(patch.code), _mark(failure))
        self._after[step] = after
        return after

    def _observe(self, step: str, patch: Patch, failure: str | None) -> None:
        """Record the state after an attempt; the policy judges it and may end the run."""
        after = self._after[step]
        pieces: list[Any] = [("state_after", _state(self._case, after))]
        self.run.keep(pieces, step_id=step, before=self._before, after=after)
        failed_so = _mark(failure) if patch.author in _MAY_LOOP else None
        observation = Observation(after.state_key, failure is not None, failed_so)
        self.run.observe(observation, step, self._before, after)

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


def _mark(failure: str | None) -> str | None:
    """Return the stand-in for an attempt's failure in its signature."""
    return None if failure is None else digest("failure", failure)


def _uri(refs: Sequence[EvidenceRef], kind: str) -> str | None:
    """Return where that kind of evidence is; None if it could not be stored."""
    return next((ref.uri for ref in refs if ref.kind == kind), None)


def _fault(
    code: str, message: str, stage: Stage, details: dict[str, Any], *, severity: Severity = "error"
) -> ErrorObject:
    return error_object(code, stage, message, utc_now(), severity=severity, details=details)


def _state(case: Case, signature: StateSignature) -> dict[str, Any]:
    """Return the partial state: only ids and hashes."""
    entry = case.entry
    return {
        "tool_name": entry.tool_name,
        "persona": entry.persona,
        "revision": entry.revision,
        "code_hash": entry.code_hash,
        "state_key": signature.state_key,
    }


# Audit entries, by the type of the event; one that only prepares something (`action_started`, …) has none.

#: Facts of a check, a proposal, a decision and an ended run that the entry keeps.
_CHECKED = ("check", "origin", "arguments", "call")
_CONTENTS = {"arguments", "call"}
_PROPOSED = ("author", "advisor", "base_revision", "base_code_hash")
_DECIDED = ("verdict", "action", "revision", "request_id")
_ENDED = ("outcome", "steps", "failures")
#: Decision → what it says.
_ACTIONS = {
    "kept": "The patch was kept as revision {revision}.",
    "pending": "The patch is waiting for approval as request {request_id}.",
    "declined": "The patch was declined.",
    "denied": "The policy forbids patches of this tool.",
}

#: Parameters, metadata and description of an entry.
_Facts = tuple[dict[str, Any], AuditMetadata, str]


def heal_steps(tool_name: str, *, contents: bool) -> Tell:
    """Return a function that describes a healing's events for the audit.

    contents: Whether the tool's arguments may be on record.
    """

    def tell(event: TraceEvent) -> Told | None:
        teller = _TOLD.get(event.event_type)
        facts = None if teller is None else teller(event)
        if facts is None:
            return None
        params, metadata, description = facts
        if not contents:
            params = {name: value for name, value in params.items() if name not in _CONTENTS}
        if event.step_id:
            params = {**params, "step": event.step_id}
        return Told(event.event_type, tool_name, params, metadata, description)

    return tell


def _observed(event: TraceEvent) -> _Facts | None:
    recorded = event.metadata
    if recorded.get("phase") != "before":
        return None
    failure = f" after the failure in log row {recorded['log_id']}" if recorded.get("log_id") else ""
    checks = count(recorded.get("total", 0), "check")
    metadata = AuditMetadata(view_files=recorded.get("view_files"))
    return {"log_id": recorded.get("log_id")}, metadata, f"The healing begins{failure}, with {checks}."


def _raised(event: TraceEvent) -> _Facts:
    code = "" if event.error is None else event.error.error_code
    return {}, AuditMetadata(success=False, error_message=code), f"An error was recorded: {code}."


def _inspected(event: TraceEvent) -> _Facts:
    result = event.result or {}
    finding = str(event.metadata.get("finding"))
    is_question = event.metadata.get("criteria_profile") == "person"
    description = f"{'Question to a person' if is_question else 'Diagnosis'}: {finding.replace('_', ' ')}."
    return (
        {"kind": result.get("kind"), "line": result.get("line")},
        AuditMetadata(actual_state={"status": event.metadata.get("status"), "finding": finding}),
        description,
    )


def _checked(event: TraceEvent) -> _Facts:
    result = event.result or {}
    outcome = result.get("outcome")
    code = "the code as it is" if event.state_signature_after is None else "the patch"
    params: dict[str, Any] = {name: result[name] for name in _CHECKED if name in result}
    metadata = AuditMetadata(
        success=outcome == "passed", intended_state={"outcome": "passed"}, actual_state={"outcome": outcome}
    )
    return params, metadata, f"Check {result.get('check')} ({result.get('origin')}) of {code}: {outcome}."


def _proposed(event: TraceEvent) -> _Facts:
    params = {name: event.metadata.get(name) for name in _PROPOSED}
    return params, AuditMetadata(), f"A patch was proposed by {params['author']}."


def _executed(event: TraceEvent) -> _Facts:
    result = event.result or {}
    passed, total = result.get("passed", 0), result.get("total", 0)
    metadata = AuditMetadata(
        duration_ms=result.get("duration_ms"),
        success=passed == total,
        intended_state={"passed": total},
        actual_state={"passed": passed},
    )
    return {}, metadata, f"The patch passes {passed} of {count(total, 'check')}."


def _judged(event: TraceEvent) -> _Facts:
    facts = {name: event.metadata[name] for name in _DECIDED if name in event.metadata}
    code = None if event.error is None else event.error.error_code
    metadata = AuditMetadata(success=code is None, error_message=code, actual_state=facts)
    if "action" in facts:
        return {}, metadata, _ACTIONS.get(facts["action"], "Decision: {action}.").format_map(_Known(facts))
    verdict = VERDICTS.get(facts.get("verdict", ""))
    return {}, metadata, f"Verdict: {verdict.words if verdict else facts.get('verdict')}."


def _recovered(event: TraceEvent) -> _Facts:
    result = event.result or {}
    metadata = AuditMetadata(success=True, actual_state={"revision": result.get("revision")})
    return {}, metadata, f"The patch was rolled back by revision {result.get('revision')}."


def _halted(event: TraceEvent) -> _Facts:
    policy = dict(event.metadata.get("policy") or {})
    metadata = AuditMetadata(success=False, error_message="POLICY_HALT", actual_state=policy)
    return {}, metadata, f"The policy ended the healing: {policy.get('reason')}."


def _finished(event: TraceEvent) -> _Facts:
    result = event.result or {}
    state = {name: result[name] for name in _ENDED if name in result}
    word = str(result.get("reason") or "").partition(":")[0]
    return (
        {},
        AuditMetadata(success=result.get("outcome") == "completed", actual_state=state),
        (f"The healing ended: {result.get('outcome')}{f', {word}' if word else ''}."),
    )


class _Known(dict[str, Any]):
    """Facts of a decision; a missing one is written as `?`."""

    def __missing__(self, _: str) -> str:
        return "?"


_TOLD: dict[str, Callable[[TraceEvent], _Facts | None]] = {
    "observation_captured": _observed,
    "error_raised": _raised,
    "inspection_finished": _inspected,
    "assert_checked": _checked,
    "proposal_received": _proposed,
    "action_executed": _executed,
    "proposal_accepted": _judged,
    "proposal_rejected": _judged,
    "recovery_finished": _recovered,
    "policy_halt": _halted,
    "run_finished": _finished,
}

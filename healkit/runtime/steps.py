"""Steps of runs, and executions that are tried again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

import msgspec

from healkit.contracts.execution import CallRecord, Finished, Started, utc_now
from healkit.contracts.failure import Failure
from healkit.contracts.runs import (
    SCHEMA_VERSION,
    ActionSpec,
    Condition,
    Observation,
    PolicyDefaults,
    Stage,
    StateSignature,
    StepPolicy,
    condition,
    details_of,
    error_object,
    sign,
)
from healkit.contracts.vault import VaultEntry
from healkit.errors import HealkitError, is_retryable
from healkit.runtime.step_facts import compared, evidence_of, fault_of, tags_of
from healkit.runtime.step_listener import StepListener
from healkit.store.entries import NO_REVISION

if TYPE_CHECKING:
    from healkit.runtime.runs import OpenRun  # a run makes its steps, and each goes on in it

StepKind = Literal["run", "try", "rerun"]
P = ParamSpec("P")

#: Precondition that a refusal's code says was not met; the others are met when the action is compiled.
_PRECONDITIONS = {
    "TOOL_NOT_FOUND": "tool_found",
    "TOOL_REMOVED": "tool_found",
    "PERSONA_NOT_FOUND": "tool_found",
    "VAULT_TAMPERED": "code_hash",
    "CODE_SYNTAX": "code_parses",
    "TOOL_SHAPE": "code_parses",
    "SQL_NOT_ALLOWED": "code_parses",
    "ARGUMENTS_INVALID": "arguments",
    "SCHEMA_INVALID": "arguments",
    "ISOLATION_UNAVAILABLE": "isolation",
}
#: Preconditions of an execution, and its postconditions, in the order in which they are checked.
_BEFOREHAND = ("tool_found", "code_hash", "code_parses", "arguments", "isolation")
_AFTERWARDS = ("returned", "is_json", "within_limit")
#: Codes of checks after the tool has returned.
_POSTCONDITIONS = {"TOOL_RESULT_TOO_LARGE", "TOOL_RESULT_UNSUPPORTED", "TOOL_PROTOCOL"}
#: Longer values are hashed as they are: they cannot be guessed, and cleaning them would take seconds.
_CLEANED_HASH_MAX_CHARS = 64 * 1024


def _quietly(method: Callable[Concatenate[RunStep, P], None]) -> Callable[Concatenate[RunStep, P], None]:
    """Keep mistakes in the record from the tool's caller; they are told with the run's other problems."""

    @functools.wraps(method)
    def guarded(self: RunStep, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the tool's outcome is worth more
            self.run.note(f"{method.__name__}: {type(error).__name__}: {error}")

    return guarded


class Retried(StepListener):
    """Execution in no run that is tried again as a policy allows, with a row in the log for each attempt.

    attempts: the rows of those before.
    """

    def __init__(
        self, policy: StepPolicy, kind: StepKind = "run", attempts: tuple[int | None, ...] = ()
    ) -> None:
        self.attempts = attempts
        self._policy = policy
        self._kind = kind
        self._acts = kind == "try"
        self._log_id: int | None = None

    def observed(self, started: Started, entry: VaultEntry) -> None:
        self._acts = self._acts or entry.acts

    def started(self, log_id: int | None) -> None:
        self._log_id = log_id

    def acted(self) -> None:
        self._acts = True

    def refused(self, started: Started, finished: Finished) -> None:
        self._ask_again(finished, [])

    def ended(
        self, finished: Finished, encoded: str, outputs: list[dict[str, Any]], calls: list[CallRecord]
    ) -> None:
        self._ask_again(finished, calls)

    def next_try(self) -> StepListener:
        return Retried(self._policy, self._kind, (*self.attempts, self._log_id))

    def _ask_again(self, finished: Finished, calls: Sequence[CallRecord]) -> None:
        fault = _passing_fault(finished.failure, calls, self._policy.defaults, self._acts, self._kind)
        if fault is not None and (verdict := self._policy.retry("call", *fault)).granted:
            self.retry_in_s = verdict.wait_ms / 1000


def _passing_fault(
    failure: Failure | None,
    calls: Sequence[CallRecord],
    policy: PolicyDefaults,
    acts: bool,
    kind: StepKind,
) -> tuple[str, str] | None:
    """Return code and exception of a fault that may pass by itself; None where the call may have done something.

    acts: it has side effects, or has called a tool that has. Code that is only tried out is never tried twice.
    """
    if failure is None or kind == "try":
        return None
    if (acts or any(call.success for call in calls)) and not (acts and policy.retry_side_effects):
        return None
    fault = fault_of(failure, calls)
    return fault if is_retryable(*fault) else None


class RunStep(StepListener):
    """Recorded execution.

    earlier: the ending that a re-run is compared with, as the log has it. attempts: the rows of the tries before.
    """

    def __init__(
        self,
        run: OpenRun,
        kind: StepKind = "run",
        earlier: Finished | None = None,
        attempts: tuple[int | None, ...] = (),
    ) -> None:
        self.run = run
        self.attempts = attempts
        self.run_id = run.run_id
        self.step_id: str | None = None
        self._kind = kind
        self._earlier = earlier
        self._critical = kind == "try"
        self._acts = False
        self._log_id: int | None = None
        self._entry: VaultEntry | None = None
        self._beginning: Started | None = None
        self._before: StateSignature | None = None
        self._prepared = self._started = self._rejected = False
        self._mode = ""
        self._hashed: tuple[str, Any] | None = None

    @property
    def problem(self) -> str:  # type: ignore[override]  # the base has nothing to say, ever
        """Sentence on what is missing in the run's record."""
        return self.run.problem

    def admit(self, started: Started) -> None:
        """Take a number, if the run's list and its policy let this step begin."""
        self.step_id = self.run.admit(started.tool_name)

    @_quietly
    def proposed(self, base: VaultEntry, code: str) -> None:
        known = {"author": "person", "base_revision": base.revision, "base_code_hash": base.code_hash}
        known |= self.run.proposal("person")
        self.run.append("proposal_received", step_id=self.step_id, metadata=known)
        self.run.keep([("code", base.code), ("proposal", code)], step_id=self.step_id)

    @_quietly
    def judged(self, fault: HealkitError | None) -> None:
        if fault is None:
            self.run.append("proposal_accepted", step_id=self.step_id, metadata={"phase": "to be tried"})
            return
        self._rejected = True
        error = error_object(fault.code, "proposal", str(fault), utc_now(), details=details_of(fault))
        self.run.append("proposal_rejected", step_id=self.step_id, error=error)

    @_quietly
    def observed(self, started: Started, entry: VaultEntry) -> None:
        self._beginning, self._entry = started, entry
        self._acts = entry.acts
        self._critical = self._critical or entry.acts
        earlier = self._earlier.fingerprint if self._earlier else None
        self._before = self._sign(fingerprint=earlier)
        known = {"phase": "before", "policy": self.run.policy_facts(self._before.state_key)}
        self.run.append("observation_captured", step_id=self.step_id, before=self._before, metadata=known)
        pieces: list[Any] = [("state_before", self._state(self._before, earlier))]
        self.run.keep(pieces, step_id=self.step_id, before=self._before)

    @_quietly
    def prepared(self, started: Started, timeout_s: float, mode: str) -> None:
        self._beginning, self._mode, self._prepared = started, mode, True
        checks = [name for name in _BEFOREHAND if name != "code_parses" or self._kind == "try"]
        against: dict[str, dict[str, Any]] = {
            "code_hash": {"code_hash": started.code_hash},
            "isolation": {"isolation": started.isolation},
            "within_limit": {"limit_bytes": self.run.result_max_bytes},
        }
        spec = ActionSpec(
            schema_version=SCHEMA_VERSION,
            action_id=f"{self.step_id}.{self._kind}",
            kind=self._kind,
            tool_name=started.tool_name,
            persona=started.persona,
            revision=started.revision,
            code_hash=started.code_hash,
            arguments=msgspec.json.decode(started.arguments),
            mode=mode,
            timeout_s=timeout_s,
            isolation=started.isolation,
            criticality="critical" if self._critical else "normal",
            preconditions=[condition(name, **against.get(name, {})) for name in checks],
            postconditions=[condition(name, **against.get(name, {})) for name in _AFTERWARDS],
            assertions=self._assertions(),
            tags=tags_of(self._entry),
            grants=msgspec.to_builtins(started.grants),
        )
        self.run.append(
            "action_compiled", step_id=self.step_id, before=self._before, action_spec=spec,
            metadata={"trace_id": started.trace_id},
        )  # fmt: skip
        held = {"checks": dict.fromkeys(checks, True)}
        self.run.append("preconditions_checked", step_id=self.step_id, before=self._before, result=held)
        if self._critical:
            # Keep it now: a crash in the middle would lose it.
            self.run.keep(self._given(), step_id=self.step_id, before=self._before)

    @_quietly
    def started(self, log_id: int | None) -> None:
        self._started, self._log_id = True, log_id
        self.run.append(
            "action_started", step_id=self.step_id, before=self._before, metadata={"log_id": log_id}
        )

    def acted(self) -> None:
        self._acts = True

    @_quietly
    def refused(self, started: Started, finished: Finished) -> None:
        if self.step_id is None or finished.failure is None:
            return  # not admitted: the policy's own event says so
        self._beginning = started
        code = finished.failure.code
        stage: Stage = "action" if self._started else "proposal" if self._rejected else "preconditions"
        if not self._started and code in _PRECONDITIONS:
            held = {"checks": {_PRECONDITIONS[code]: False}}
            self.run.append("preconditions_checked", step_id=self.step_id, before=self._before, result=held)
        self._error(finished.failure, stage, None)
        self._conclude(finished, [], [])
        self._ask_again(finished, [])

    @_quietly
    def ended(
        self, finished: Finished, encoded: str, outputs: list[dict[str, Any]], calls: list[CallRecord]
    ) -> None:
        after = self._sign(fingerprint=finished.fingerprint, outputs=[encoded, outputs])
        came = {
            "status": finished.status,
            "value": None if finished.failure else finished.result_summary,
            "code": finished.failure.code if finished.failure else None,
            "duration_ms": round(finished.duration_ms, 3),
            "calls": len(calls),
        }
        self.run.append(
            "action_executed", step_id=self.step_id, before=self._before, after=after, result=came
        )
        if finished.failure is None:
            fits = len(encoded) <= self.run.result_max_bytes
            checks = dict(zip(_AFTERWARDS, (True, True, fits), strict=True))
            self.run.append(
                "postconditions_checked", step_id=self.step_id, before=self._before, after=after,
                result={"checks": checks},
            )  # fmt: skip
        else:
            stage: Stage = "postconditions" if finished.failure.code in _POSTCONDITIONS else "action"
            self._error(finished.failure, stage, after, calls)
        self._conclude(finished, outputs, calls, after)
        self._ask_again(finished, calls)

    def _ask_again(self, finished: Finished, calls: Sequence[CallRecord]) -> None:
        """Ask the policy for another try after a passing fault, unless this one may have done something already."""
        fault = _passing_fault(finished.failure, calls, self.run.caps, self._acts, self._kind)
        if self._before is None or fault is None:
            return
        code, ename = fault
        verdict = self.run.retry(self._before.state_key, code, ename)
        if verdict.granted:
            tried = len(self.attempts) + 1
            known = {"code": code, "ename": ename, "count": tried, "wait_ms": verdict.wait_ms}
            self.run.append("retry_scheduled", step_id=self.step_id, before=self._before, metadata=known)
            self.retry_in_s = verdict.wait_ms / 1000

    def next_try(self) -> StepListener:
        """Record that the pause is over; return the step of the next try."""
        known = {"wait_ms": round((self.retry_in_s or 0.0) * 1000)}
        self.run.append("backoff_applied", step_id=self.step_id, before=self._before, metadata=known)
        return RunStep(self.run, self._kind, self._earlier, (*self.attempts, self._log_id))

    def _error(
        self, failure: Failure, stage: Stage, after: StateSignature | None, calls: Sequence[CallRecord] = ()
    ) -> None:
        frame = failure.tool_frame
        cause, ename = fault_of(failure, calls)
        details: dict[str, Any] = {"ename": failure.ename, "line": frame.lineno if frame else None}
        details |= {"hint": failure.hint} if failure.hint else {}
        if cause != failure.code or ename != failure.ename:  # that of a call
            details["cause"] = {"code": cause, "ename": ename}
        again = is_retryable(cause, ename)
        error = error_object(
            failure.code, stage, failure.summary, utc_now(), details=details, retryable=again
        )
        self.run.append("error_raised", step_id=self.step_id, before=self._before, after=after, error=error)

    def _conclude(
        self,
        finished: Finished,
        outputs: list[dict[str, Any]],
        calls: list[CallRecord],
        after: StateSignature | None = None,
    ) -> None:
        """Evidence, the comparison of a re-run, and the observation that the policy judges."""
        after = after or self._sign(fingerprint=finished.fingerprint)
        pieces: list[Any] = [("state_after", self._state(after, finished.fingerprint))]
        if finished.failure is not None or self._critical:
            pieces += [] if self._critical and self._prepared else self._given()
            pieces += evidence_of(finished, outputs, calls)
        self.run.keep(pieces, step_id=self.step_id, before=self._before, after=after)
        if self._earlier is not None and self._started:
            result = compared(self._earlier, finished)
            self.run.append("assert_checked", step_id=self.step_id, after=after, result=result)
        failed = finished.failure is not None
        observation = Observation(after.state_key, failed, finished.fingerprint)
        self.run.observe(observation, self.step_id, self._before, after)

    def _assertions(self) -> list[Condition]:
        """Return what a re-run is compared with; another ending is worth a look, and no error."""
        if self._earlier is None:
            return []
        expected = self._earlier.fingerprint or self._earlier.status
        return [condition("same_ending", severity="warning", expected=expected)]

    def _given(self) -> list[Any]:
        """Code and arguments, in full; the code of a proposal is kept as such already."""
        pieces: list[Any] = []
        if self._entry is not None and self._entry.revision != NO_REVISION:
            pieces.append(("code", self._entry.code))
        if self._beginning is not None:
            pieces.append(("arguments", msgspec.json.decode(self._beginning.arguments)))
        return pieces

    def _sign(self, *, fingerprint: str | None, outputs: Any = None) -> StateSignature:
        started = self._beginning
        assert started is not None  # told by `observed`, or by `refused` itself
        return sign(
            tool_name=started.tool_name,
            persona=started.persona,
            code_hash=started.code_hash,
            arguments=self._clean_arguments(),
            fingerprint=fingerprint,
            outputs=None if outputs is None else self._hashable(msgspec.json.encode(outputs).decode()),
            worker=[started.isolation, self._mode, msgspec.to_builtins(started.grants)]
            if self._prepared
            else None,
        )

    def _clean_arguments(self) -> Any:
        """Return the arguments as they are hashed; cleaned once for all signatures of the step."""
        assert self._beginning is not None  # as above
        if self._hashed is None or self._hashed[0] != self._beginning.arguments:
            self._hashed = self._beginning.arguments, self._hashable(self._beginning.arguments)
        return self._hashed[1]

    def _hashable(self, encoded: str) -> Any:
        """Return a JSON text as the value that is hashed: cleaned, because a hash of a short text can be guessed."""
        if len(encoded) > _CLEANED_HASH_MAX_CHARS:
            return encoded
        return self.run.cleaner.clean(msgspec.json.decode(encoded), limit_bytes=1 << 30).value

    def _state(self, signature: StateSignature, fingerprint: str | None) -> dict[str, Any]:
        """Return the partial state: all of it ids, codes and hashes, and nothing of the payload."""
        started = self._beginning
        assert started is not None  # as above
        return {
            "tool_name": started.tool_name,
            "persona": started.persona,
            "revision": started.revision,
            "code_hash": started.code_hash,
            "fingerprint": fingerprint,
            "isolation": started.isolation,
            "mode": self._mode or None,
            "signature": msgspec.to_builtins(signature),
        }

"""Execution as a step of a run.

The executor tells its listener what happens, as it happens; no mistake of the listener's reaches the tool. A plain
`StepListener` forgets everything, a `RunStep` writes it into a run folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

import msgspec

from healkit.contracts.entries import VaultEntry
from healkit.contracts.events import ActionSpec, Stage, error_object
from healkit.contracts.failure import Failure
from healkit.contracts.records import CallRecord, Finished, Started, utc_now
from healkit.contracts.run_policy import Observation
from healkit.contracts.signature import StateSignature, sign
from healkit.store.entries import NO_REVISION

if TYPE_CHECKING:
    from healkit.runtime.runs import OpenRun  # a run makes its steps, and each goes on in it

StepKind = Literal["run", "try", "rerun"]
P = ParamSpec("P")

#: Precondition that a refusal's code says was not met; the others are met when the action is compiled.
_PRECONDITIONS = {
    "TOOL_NOT_FOUND": "tool_found",
    "PERSONA_NOT_FOUND": "tool_found",
    "VAULT_TAMPERED": "code_hash",
    "CODE_SYNTAX": "code_parses",
    "TOOL_SHAPE": "code_parses",
    "SQL_NOT_ALLOWED": "code_parses",
    "ARGUMENTS_INVALID": "arguments",
    "SCHEMA_INVALID": "arguments",
    "ISOLATION_UNAVAILABLE": "isolation",
}
#: Codes of checks after the tool has returned.
_POSTCONDITIONS = {"TOOL_RESULT_TOO_LARGE", "TOOL_PROTOCOL"}
#: Longer values are hashed as they are: they cannot be guessed, and cleaning them would take seconds.
_CLEANED_HASH_MAX_CHARS = 64 * 1024


class StepListener:
    """Listener to one execution; this one forgets it. All of it may be called on any thread."""

    run_id: str | None = None
    problem: str = ""

    def admit(self, started: Started) -> None:
        """Asked before anything else; raises `PolicyHalted` or `RunNotAllowed` for a step that may not begin."""

    def proposed(self, base: VaultEntry, code: str) -> None:
        """Other code than the stored is to be tried."""

    def judged(self, fault: str | None, error_code: str = "") -> None:
        """Hear that the code can be run as this tool, or why not."""

    def observed(self, started: Started, entry: VaultEntry) -> None:
        """Hear that the tool was found and its code has its hash."""

    def prepared(self, started: Started, timeout_s: float, mode: str) -> None:
        """Nothing speaks against the call; told before its row is written."""

    def started(self, log_id: int | None) -> None:
        """Hear that its RUNNING row is committed; the worker comes next."""

    def refused(self, started: Started, finished: Finished) -> None:
        """Hear that it ended without having been run, without a worker to run it, or cancelled from outside."""

    def ended(
        self, finished: Finished, encoded: str, outputs: list[dict[str, Any]], calls: list[CallRecord]
    ) -> None:
        """Hear that it ended, in a value (`encoded`, as JSON) or a failure."""


#: For an execution that is no step of a run.
UNRECORDED = StepListener()


def _quietly(method: Callable[Concatenate[RunStep, P], None]) -> Callable[Concatenate[RunStep, P], None]:
    """Keep mistakes in the record from the tool's caller; they are told with the run's other problems."""

    @functools.wraps(method)
    def guarded(self: RunStep, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the tool's outcome is worth more
            self.run.note(f"{method.__name__}: {type(error).__name__}: {error}")

    return guarded


class RunStep(StepListener):
    """Recorded execution. `earlier` is the ending that a re-run is compared with, as the log has it."""

    def __init__(self, run: OpenRun, kind: StepKind = "run", earlier: Finished | None = None) -> None:
        self.run = run
        self.run_id = run.run_id
        self.step_id: str | None = None
        self._kind = kind
        self._earlier = earlier
        self._critical = kind == "try"
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
        known = {
            "author": "person",
            "base_revision": base.revision,
            "base_code_hash": base.code_hash,
        }
        self.run.append("proposal_received", step_id=self.step_id, metadata=known)
        self.run.keep([("code", base.code), ("proposal", code)], step_id=self.step_id)

    @_quietly
    def judged(self, fault: str | None, error_code: str = "") -> None:
        if fault is None:
            self.run.append("proposal_accepted", step_id=self.step_id, metadata={"phase": "to be tried"})
            return
        self._rejected = True
        error = error_object(error_code, "proposal", fault, utc_now())
        self.run.append("proposal_rejected", step_id=self.step_id, error=error)

    @_quietly
    def observed(self, started: Started, entry: VaultEntry) -> None:
        self._beginning, self._entry = started, entry
        self._critical = self._critical or bool(entry.flags.get("side_effects") or entry.grants.write)
        earlier = self._earlier.fingerprint if self._earlier else None
        self._before = self._sign(fingerprint=earlier)
        count = self.run.seen(self._before.state_key)
        self.run.append(
            "observation_captured",
            step_id=self.step_id,
            before=self._before,
            metadata={"phase": "before", "same_state_count": count},
        )
        pieces: list[Any] = [("state_before", self._state(self._before, earlier))]
        self.run.keep(pieces, step_id=self.step_id, before=self._before)

    @_quietly
    def prepared(self, started: Started, timeout_s: float, mode: str) -> None:
        self._beginning, self._mode, self._prepared = started, mode, True
        spec = ActionSpec(
            kind=self._kind,
            tool_name=started.tool_name,
            persona=started.persona,
            revision=started.revision,
            code_hash=started.code_hash,
            arguments=msgspec.json.decode(started.arguments),
            mode=mode,
            timeout_s=timeout_s,
            isolation=started.isolation,
            grants=msgspec.to_builtins(started.grants),
        )
        self.run.append(
            "action_compiled", step_id=self.step_id, before=self._before, action_spec=spec,
            metadata={"trace_id": started.trace_id},
        )  # fmt: skip
        checks = dict.fromkeys(("tool_found", "code_hash", "code_parses", "arguments", "isolation"), True)
        if self._kind != "try":
            del checks["code_parses"]
        self.run.append("preconditions_checked", step_id=self.step_id, result={"checks": checks})
        if self._critical:
            # Keep it now: a crash in the middle would lose it.
            self.run.keep(self._given(), step_id=self.step_id, before=self._before)

    @_quietly
    def started(self, log_id: int | None) -> None:
        self._started = True
        self.run.append(
            "action_started", step_id=self.step_id, before=self._before, metadata={"log_id": log_id}
        )

    @_quietly
    def refused(self, started: Started, finished: Finished) -> None:
        if self.step_id is None or finished.failure is None:
            return  # not admitted: the policy's own event says so
        self._beginning = started
        code = finished.failure.code
        stage: Stage = "action" if self._started else "proposal" if self._rejected else "preconditions"
        if not self._started and code in _PRECONDITIONS:
            self.run.append(
                "preconditions_checked",
                step_id=self.step_id,
                result={"checks": {_PRECONDITIONS[code]: False}},
            )
        self._error(finished.failure, stage, None)
        self._conclude(finished, [], [])

    @_quietly
    def ended(
        self, finished: Finished, encoded: str, outputs: list[dict[str, Any]], calls: list[CallRecord]
    ) -> None:
        after = self._sign(fingerprint=finished.fingerprint, outputs=[encoded, outputs])
        came = {
            "status": finished.status,
            "value": finished.result_summary,
            "code": finished.failure.code if finished.failure else None,
            "duration_ms": round(finished.duration_ms, 3),
            "calls": len(calls),
        }
        self.run.append(
            "action_executed", step_id=self.step_id, before=self._before, after=after, result=came
        )
        if finished.failure is None:
            fits = len(encoded) <= self.run.result_max_bytes
            checks = {"returned": True, "is_json": True, "within_limit": fits}
            self.run.append(
                "postconditions_checked", step_id=self.step_id, after=after, result={"checks": checks}
            )
        else:
            stage: Stage = "postconditions" if finished.failure.code in _POSTCONDITIONS else "action"
            self._error(finished.failure, stage, after)
        self._conclude(finished, outputs, calls, after)

    def _error(self, failure: Failure, stage: Stage, after: StateSignature | None) -> None:
        frame = failure.tool_frame
        details = {"ename": failure.ename, "line": frame.lineno if frame else None}
        error = error_object(failure.code, stage, failure.summary, utc_now(), details=details)
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
            pieces += _came_of(finished, outputs, calls)
        self.run.keep(pieces, step_id=self.step_id, before=self._before, after=after)
        if self._earlier is not None and self._started:
            result = _compared(self._earlier, finished)
            self.run.append("assert_checked", step_id=self.step_id, after=after, result=result)
        failed = finished.failure is not None
        observation = Observation(after.state_key, failed, finished.fingerprint)
        self.run.observe(observation, self.step_id, self._before, after)

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


def _came_of(finished: Finished, outputs: list[dict[str, Any]], calls: list[CallRecord]) -> list[Any]:
    """Failure, what was printed and displayed, and the calls made, in full."""
    pieces: list[Any] = []
    if finished.failure is not None:
        pieces.append(("failure", msgspec.to_builtins(finished.failure)))
    for name in ("stdout", "stderr"):
        printed = "".join(str(o["text"]) for o in outputs if o.get("name") == name and "text" in o)
        if name == "stdout" and not printed:
            printed = finished.last_output
        pieces += [(name, printed)] if printed else []
    rich = [output for output in outputs if output.get("output_type") != "stream"]
    pieces += [("outputs", rich)] if rich else []
    pieces += [("calls", [_call(record) for record in calls])] if calls else []
    return pieces


def _call(record: CallRecord) -> dict[str, Any]:
    """Return a call without what differs from run to run."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {
        name: fields[name] for name in fields if name not in {"trace_id", "started_at", "duration_ms", "type"}
    }


def _compared(earlier: Finished, finished: Finished) -> dict[str, Any]:
    """Compare both endings: the same failure, or success with the same value, as far as the log has it."""
    expected, found = earlier.fingerprint or earlier.status, finished.fingerprint or finished.status
    same = expected == found and earlier.result_summary == finished.result_summary
    return {"expected": expected, "found": found, "same": same}

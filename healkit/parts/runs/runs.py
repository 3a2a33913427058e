"""Runs that are being written, their policy and their steps.

Runs are optional. `with hk.run():` makes every execution inside it a step; `record=True` makes a run of one execution.
The folder is written when things happen, on the same thread: `RunStep` takes an execution's events and writes those of
the run.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import CallRecord, Finished, Started, utc_now
from healkit.core.contracts.failure import Failure
from healkit.core.contracts.vault import VaultEntry
from healkit.core.rendering import plain
from healkit.core.runtime import events
from healkit.core.runtime.events import (
    UNRECORDED,
    Acted,
    Ended,
    Event,
    Found,
    Judged,
    Prepared,
    Proposed,
    RetryPolicy,
    Running,
    Sink,
    StepKind,
    Steps,
)
from healkit.core.secrets.cleaner import Cleaner
from healkit.core.store.entries import NO_REVISION
from healkit.errors import HealkitError, PolicyHalted, RunFolderError, RunNotAllowed, is_retryable
from healkit.parts.runs.contract import (
    SCHEMA_VERSION,
    ActionSpec,
    EventType,
    ExecutionMode,
    ExecutionProfile,
    Halt,
    Observation,
    PolicyDefaults,
    PolicyVerdict,
    Stage,
    StateSignature,
    condition,
    details_of,
    error_object,
    sign,
)
from healkit.parts.runs.journal import EventContent, RunJournal
from healkit.parts.runs.run_audit import RunAudit, TellOf
from healkit.parts.runs.run_folders import manifest_for
from healkit.parts.runs.run_policy import RunPolicy

if TYPE_CHECKING:
    from healkit.parts.runs.audit import Audit

#: Runs around the code of this context, innermost last.
_inside: ContextVar[tuple[OpenRun, ...]] = ContextVar("healkit_runs", default=())


class OpenRun:
    """A run in progress; made by `Healkit.run`. Leaving its `with` block finishes it.

    `run_id` names it, `folder` is where it is written, `problem` says what could not be written.
    """

    def __init__(
        self, owner: Runs, journal: RunJournal, policy: RunPolicy, allow: Sequence[str], config: Config
    ) -> None:
        self.owner = owner
        self.run_id = journal.run_id
        self.folder: Path = journal.folder
        self.cleaner = owner.cleaner
        self.result_max_bytes = config.result_max_bytes
        self.append = journal.append
        self.learn = journal.learn
        self.keep = journal.keep
        self._journal = journal
        self._policy = policy
        self._allow = tuple(allow)
        self._lock = threading.Lock()
        self._steps = self._failures = self._proposals = 0
        self._halted: Halt | None = None
        self._last_state: StateSignature | None = None
        self._fault = ""

    @property
    def problem(self) -> str:
        """Sentence on what is missing in the record; empty if nothing is."""
        fault = f"The record of run {self.run_id!r} is not complete: {self._fault}." if self._fault else ""
        return self._journal.problem or fault

    @property
    def halted(self) -> Halt | None:
        """Reason why the policy has ended the run, or None."""
        return self._halted

    @property
    def caps(self) -> PolicyDefaults:
        """Caps of its policy."""
        return self._policy.defaults

    @property
    def last_step(self) -> str | None:
        """Id of the newest step, or None before the first."""
        return f"step_{self._steps}" if self._steps else None

    def note(self, what: str) -> None:
        """Record an error of the record itself; called instead of raising it."""
        self._fault = what

    def admit(self, tool_name: str) -> str:
        """Return the next step's id; raises `RunNotAllowed`, or `PolicyHalted` once the policy has ended the run."""
        if self._journal.closed:
            raise RunFolderError(
                f"Run {self.run_id!r} has ended.", hint="Start another one: with hk.run(): …"
            )
        if not any(fnmatch.fnmatchcase(tool_name, pattern) for pattern in self._allow):
            allowed = ", ".join(map(repr, self._allow)) or "none"
            refused = RunNotAllowed(
                f"{tool_name!r} is not on the list of run {self.run_id!r}, which is {allowed}.",
                hint="Execute it outside this run, or start a run with allow=(…).",
            )
            details = {**details_of(refused), "tool_name": tool_name, "allowed": list(self._allow)}
            fault = error_object(refused.code, "preconditions", refused.message, utc_now(), details=details)
            self.append("error_raised", error=fault)
            raise refused
        with self._lock:
            verdict = self._policy.step()
            if verdict.halt is None:
                self._steps += 1
                return f"step_{self._steps}"
        self.halt(verdict.halt, None, None, None)
        raise PolicyHalted(
            f"Run {self.run_id!r} was ended by its policy ({verdict.halt.rule}): {verdict.halt.reason}",
            hint="Change something (the code, the arguments), then start another run.",
        )

    def proposal(self, source: str) -> dict[str, Any]:
        """Count a proposal; return its source and its number in the run, for its event."""
        with self._lock:
            self._proposals += 1
            return {"proposal_source": source, "proposal_count": self._proposals}

    def policy_facts(self, state_key: str) -> dict[str, int]:
        """Return how near the run is to its caps: how often that failing state was observed, and the steps so far."""
        with self._lock:
            return self._facts(self._policy.seen(state_key))

    def _facts(self, count: int) -> dict[str, int]:
        caps = self._policy.defaults
        return {
            "same_state_revisit_count": count,
            "same_state_revisit_threshold": caps.same_state_revisits,
            "steps_taken": self._steps,
            "hard_cap_steps": caps.hard_cap_steps,
        }

    def retry(self, action: str, error_code: str, ename: str) -> PolicyVerdict:
        """Ask the policy whether a failed action may be tried again, and after which pause.

        Refused if no step is left: then the outcome reaches the caller, not a `PolicyHalted`.
        """
        with self._lock:
            if self._steps >= self._policy.defaults.hard_cap_steps:
                return PolicyVerdict(refusal="No step is left for another attempt.")
            return self._policy.retry(action, error_code, ename)

    def observe(
        self,
        observation: Observation,
        step_id: str | None,
        before: StateSignature | None,
        after: StateSignature,
    ) -> None:
        """Write how a step ended and let the policy judge it; a halt is written, and ends the run."""
        with self._lock:
            verdict = self._policy.observe(observation)
            self._failures += observation.failed
            self._last_state = after
            metadata = {"phase": "after", "policy": self._facts(verdict.same_state_count)}
        self.append("observation_captured", step_id=step_id, before=before, after=after, metadata=metadata)
        if verdict.halt is not None:
            self.halt(verdict.halt, step_id, before, after)

    def finish(
        self, outcome: str = "completed", reason: str = "", after: StateSignature | None = None
    ) -> None:
        """Write the end and release the folder; called by the `with` block, and safe to call twice.

        after: The state at the end, if it is not the last observed one.
        """
        outcome = "halted" if self._halted else outcome
        result: dict[str, Any] = {"outcome": outcome, "steps": self._steps, "failures": self._failures}
        self._journal.finish({**result, "reason": reason} if reason else result, after or self._last_state)
        self.owner.forget(self)

    def halt(
        self,
        halt: Halt,
        step_id: str | None,
        before: StateSignature | None,
        after: StateSignature | None,
    ) -> None:
        """Write that the policy has ended the run; does nothing the second time."""
        with self._lock:
            if self._halted is not None:
                return
            self._halted = halt
        numbers = {"count": halt.count, "threshold": halt.threshold}
        details = {"rule": halt.rule, **numbers}
        error = error_object(
            "POLICY_HALT", "policy", halt.reason, utc_now(), severity="critical", details=details
        )
        metadata = {"policy": {"reason": halt.rule, "state_key": halt.state_key, **numbers}}
        self.append(
            "policy_halt", step_id=step_id, before=before, after=after, error=error, metadata=metadata
        )

    def __enter__(self) -> OpenRun:
        _inside.set((*_inside.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        _inside.set(tuple(run for run in _inside.get() if run is not self))
        if error is None:
            self.finish()
        else:
            self.finish("aborted", f"{type(error).__name__}: {error}")

    def __repr__(self) -> str:
        state = "halted" if self._halted else "ended" if self._journal.closed else "going on"
        return f"<run {self.run_id}, {state}, {plain.count(self._steps, 'step')}, in {str(self.folder)!r}>"


class Runs(Steps):
    """Begins the runs of one `Healkit`.

    make_cleaner: Called by the first run, because a sanitiser's tables take a while to read.
    audit: Called by the first run that is audited.
    tell_of: Returns a function that describes a run's events, by its manifest.

    Example:
    >>> with hk.runs.run("nightly") as run:
    ...     _ = hk.execute("mean", arguments={"values": [1, 2]})
    >>> run.folder.parent == hk.runs.runs_dir
    True
    """

    def __init__(
        self,
        config: Config,
        runs_dir: Path,
        make_cleaner: Callable[[], Cleaner],
        audit: Callable[[], Audit],
        tell_of: TellOf,
    ) -> None:
        self.config = config
        self.runs_dir = runs_dir
        self._make_cleaner = make_cleaner
        self._audit = audit
        self._tell_of = tell_of
        self._open: set[OpenRun] = set()  # held, so that a forgotten one still gets its end

    @functools.cached_property
    def cleaner(self) -> Cleaner:
        """Cleaner of payload."""
        return self._make_cleaner()

    def begin(
        self,
        profile: str,
        *,
        run_id: str | None = None,
        allow: str | Sequence[str] = "*",
        policy: PolicyDefaults | RunPolicy | None = None,
        mode: ExecutionMode = "live",
        parameters: Mapping[str, Any] | None = None,
        audited: bool = False,
    ) -> OpenRun:
        """Begin a run with its folder; raises `RunFolderError`, `RunExists` or `RunLocked`.

        policy: The run's own caps, or a policy object, for a loop that asks it more than a step does.
        mode: `dry_run` if the result is only shown.
        parameters: Those of the profile, for the manifest.
        audited: Whether its events become entries of the audit; a part describes them (`hooks.Specs.audit_steps`).

        Example:
        >>> with hk.runs.begin("import", parameters={"rows": 120}) as run:
        ...     _ = hk.execute("mean", arguments={"values": [1, 2]})
        >>> run
        <run ..., ended, 1 step, in ...>
        """
        allow = (allow,) if isinstance(allow, str) else allow
        judge = policy if isinstance(policy, RunPolicy) else RunPolicy(policy)
        manifest = manifest_for(
            run_id,
            ExecutionProfile(profile, dict(parameters or {})),
            self.config,
            self.cleaner,
            mode=mode,
            policy=judge.defaults,
            allow=allow,
        )
        tell = self._tell_of(manifest) if audited else None
        journal = RunJournal(
            self.runs_dir,
            manifest,
            self.cleaner,
            durable=self.config.synchronous == "FULL",
            audit=None if tell is None else RunAudit(self._audit(), manifest, tell),
        )
        run = OpenRun(self, journal, judge, allow, self.config)
        self._open.add(run)
        return run

    def run(
        self,
        profile: str = "default",
        *,
        run_id: str | None = None,
        allow: str | Sequence[str] = "*",
        policy: PolicyDefaults | None = None,
    ) -> OpenRun:
        """Begin a run: `with hk.run() as run:` writes every execution inside it to the folder `run.folder`.

        profile: Your own word for the kind of run.
        allow: Patterns of the tools that it may execute.
        policy: Its caps; over one of them the run ends, and each further execution in it raises `PolicyHalted`.

        Raises `RunFolderError`, or `RunExists` and `RunLocked` for a `run_id` that already exists.

        Example:
        >>> with hk.run("nightly", allow="mean") as run:
        ...     _ = hk.execute("mean", arguments={"values": [1, 2]})
        >>> sorted(file.name for file in run.folder.iterdir())
        ['evidence', 'evidence_manifest.json', 'run_manifest.json', 'trace.jsonl']
        """
        return self.begin(profile, run_id=run_id, allow=allow, policy=policy)

    @contextlib.contextmanager
    def step(
        self,
        record: bool | events.OpenRun | None,
        kind: StepKind = "run",
        earlier: Finished | None = None,
        retry: bool | RetryPolicy = False,
    ) -> Iterator[Sink]:
        """Give one execution its sink."""
        policy = retry if isinstance(retry, PolicyDefaults) else None
        around = self.around() if record is None else None
        if isinstance(record, OpenRun) or around is not None:
            run = record if isinstance(record, OpenRun) else around
            assert run is not None  # one of the two is
            yield RunStep(run, kind, earlier)
        elif record or (record is None and self.config.record_runs):
            yield from self._alone(kind, earlier, policy, demanded=bool(record))
        elif retry:
            yield Retried(RunPolicy(policy), kind)
        else:
            yield UNRECORDED

    def around(self) -> OpenRun | None:
        """Return the innermost run of this Healkit around the caller; None outside of a run.

        Example:
        >>> with hk.run() as run:
        ...     hk.runs.around() is run
        True
        """
        inside = _inside.get()
        return next((run for run in reversed(inside) if run.owner is self), None) if inside else None

    def forget(self, run: OpenRun) -> None:
        """Drop a run that has ended; called by it."""
        self._open.discard(run)

    def close(self) -> None:
        """End the runs that are still open; called when the Healkit is closed.

        Example:
        >>> run = hk.run()
        >>> hk.runs.close()
        >>> run
        <run ..., ended, 0 steps, in ...>
        """
        for run in list(self._open):
            run.finish("abandoned", "healkit was closed before the run had ended")

    def _alone(
        self, kind: StepKind, earlier: Finished | None, policy: PolicyDefaults | None, *, demanded: bool
    ) -> Iterator[Sink]:
        try:
            run = self.begin(kind, policy=policy)
        except RunFolderError as error:
            if demanded:
                raise
            sink = Sink()  # not asked for by name: run the tool, and warn its caller
            sink.problem = str(error)
            yield sink
            return
        try:
            yield RunStep(run, kind, earlier)
        except BaseException as error:
            run.finish("aborted", f"{type(error).__name__}: {error}")
            raise
        run.finish()


# Steps of runs, and executions that are tried again.


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


class Retried(Sink):
    """Execution outside a run that is repeated as a policy allows, with a row in the log for each attempt."""

    def __init__(
        self, policy: RunPolicy, kind: StepKind = "run", attempts: tuple[int | None, ...] = ()
    ) -> None:
        self.attempts = attempts
        self._policy = policy
        self._kind = kind
        self._acts = kind == "try"
        self._log_id: int | None = None

    def take(self, started: Started, event: Event) -> None:
        match event:
            case Found():
                self._acts = self._acts or event.entry.acts
            case Running():
                self._log_id = event.log_id
            case Acted():
                self._acts = True
            case Ended():
                caps = self._policy.defaults
                fault = _passing_fault(event.finished.failure, event.calls, caps, self._acts, self._kind)
                if fault is not None and (verdict := self._policy.retry("call", *fault)).granted:
                    self.retry_in_s = verdict.wait_ms / 1000

    def next_try(self) -> Sink:
        return Retried(self._policy, self._kind, (*self.attempts, self._log_id))


def _passing_fault(
    failure: Failure | None,
    calls: Sequence[CallRecord],
    policy: PolicyDefaults,
    acts: bool,
    kind: StepKind,
) -> tuple[str, str] | None:
    """Return code and exception of a temporary fault; None if the call may have had effects.

    acts: It has side effects, or has called a tool that has. Code that is only tried is never tried twice.
    """
    if failure is None or kind == "try":
        return None
    if (acts or any(call.success for call in calls)) and not (acts and policy.retry_side_effects):
        return None
    fault = fault_of(failure, calls)
    return fault if is_retryable(*fault) else None


class RunStep(Sink):
    """Writer of an execution into a run's folder, as a step of the run: its events make those of trace.jsonl.

    earlier: The ending for comparison with a re-run, as in the log.
    attempts: The rows of the earlier attempts.
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
        self._before: StateSignature | None = None
        self._prepared = self._started = self._rejected = False
        self._mode = ""
        self._hashed: tuple[str, Any] | None = None

    @property
    def problem(self) -> str:  # type: ignore[override]  # the base has nothing to say, ever
        """Sentence on what is missing in the run's record."""
        return self.run.problem

    def admit(self, tool_name: str) -> None:
        """Take a step number, if the run's list and its policy allow this step."""
        self.step_id = self.run.admit(tool_name)

    def take(self, started: Started, event: Event) -> None:
        """Write an event into the run; an error of the record itself is added to the run's problems."""
        try:
            match event:
                case Proposed():
                    self._proposed(event)
                case Judged():
                    self._judged(event.fault)
                case Found():
                    self._found(started, event.entry)
                case Prepared():
                    self._compiled(started, event)
                case Running():
                    self._started, self._log_id = True, event.log_id
                    self._write("action_started", metadata={"log_id": event.log_id})
                case Acted():
                    self._acts = True
                case Ended(finished=finished) if event.ran:
                    self._executed(started, finished, event)
                case Ended(finished=finished) if self.step_id is not None and finished.failure is not None:
                    self._refused(started, finished.failure, event)
        except Exception as error:  # noqa: BLE001 - whatever it is, the tool's outcome is worth more
            self.run.note(f"{type(event).__name__}: {type(error).__name__}: {error}")

    def next_try(self) -> Sink:
        """Record that the pause is over; return the step of the next attempt."""
        self._write("backoff_applied", metadata={"wait_ms": round((self.retry_in_s or 0.0) * 1000)})
        return RunStep(self.run, self._kind, self._earlier, (*self.attempts, self._log_id))

    def _write(
        self,
        event_type: EventType,
        after: StateSignature | None = None,
        **content: Unpack[EventContent],
    ) -> None:
        self.run.append(event_type, step_id=self.step_id, before=self._before, after=after, **content)

    def _keep(self, pieces: list[Any], after: StateSignature | None = None) -> None:
        self.run.keep(pieces, step_id=self.step_id, before=self._before, after=after)

    def _proposed(self, event: Proposed) -> None:
        base = event.base
        metadata = {"author": "person", "base_revision": base.revision, "base_code_hash": base.code_hash}
        self._write("proposal_received", metadata=metadata | self.run.proposal("person"))
        self._keep([("code", base.code), ("proposal", event.code)])

    def _judged(self, fault: HealkitError | None) -> None:
        if fault is None:
            self._write("proposal_accepted", metadata={"phase": "to be tried"})
            return
        self._rejected = True
        error = error_object(fault.code, "proposal", str(fault), utc_now(), details=details_of(fault))
        self._write("proposal_rejected", error=error)

    def _found(self, started: Started, entry: VaultEntry) -> None:
        self._entry, self._acts = entry, entry.acts
        self._critical = self._critical or entry.acts
        earlier = self._earlier.fingerprint if self._earlier else None
        self._before = self._sign(started, earlier)
        metadata = {"phase": "before", "policy": self.run.policy_facts(self._before.state_key)}
        self._write("observation_captured", metadata=metadata)
        self._keep([("state_before", self._state(started, self._before, earlier))])

    def _compiled(self, started: Started, event: Prepared) -> None:
        self._mode, self._prepared = event.mode, True
        checks = [name for name in _BEFOREHAND if name != "code_parses" or self._kind == "try"]
        against: dict[str, dict[str, Any]] = {
            "code_hash": {"code_hash": started.code_hash},
            "isolation": {"isolation": started.isolation},
            "within_limit": {"limit_bytes": self.run.result_max_bytes},
        }
        assertions = []
        if self._earlier is not None:  # another ending than that is worth a look, and no error
            expected = self._earlier.fingerprint or self._earlier.status
            assertions = [condition("same_ending", severity="warning", expected=expected)]
        spec = ActionSpec(
            schema_version=SCHEMA_VERSION,
            action_id=f"{self.step_id}.{self._kind}",
            kind=self._kind,
            tool_name=started.tool_name,
            persona=started.persona,
            revision=started.revision,
            code_hash=started.code_hash,
            arguments=msgspec.json.decode(started.arguments),
            mode=event.mode,
            timeout_s=event.timeout_s,
            isolation=started.isolation,
            criticality="critical" if self._critical else "normal",
            preconditions=[condition(name, **against.get(name, {})) for name in checks],
            postconditions=[condition(name, **against.get(name, {})) for name in _AFTERWARDS],
            assertions=assertions,
            tags=tags_of(self._entry),
            grants=msgspec.to_builtins(started.grants),
        )
        self._write("action_compiled", action_spec=spec, metadata={"trace_id": started.trace_id})
        self._write("preconditions_checked", result={"checks": dict.fromkeys(checks, True)})
        if self._critical:
            # Keep it now: a crash in the middle would lose it.
            self._keep(self._given(started))

    def _refused(self, started: Started, failure: Failure, event: Ended) -> None:
        stage: Stage = "action" if self._started else "proposal" if self._rejected else "preconditions"
        if not self._started and failure.code in _PRECONDITIONS:
            self._write("preconditions_checked", result={"checks": {_PRECONDITIONS[failure.code]: False}})
        self._error(failure, stage, event)
        self._conclude(started, event, self._sign(started, event.finished.fingerprint))

    def _executed(self, started: Started, finished: Finished, event: Ended) -> None:
        encoded = event.encoded or "null"
        after = self._sign(started, finished.fingerprint, outputs=[encoded, event.outputs])
        result = {
            "status": finished.status,
            "value": None if finished.failure else finished.result_summary,
            "code": finished.failure.code if finished.failure else None,
            "duration_ms": round(finished.duration_ms, 3),
            "calls": len(event.calls),
        }
        self._write("action_executed", after, result=result)
        if finished.failure is None:
            fits = len(encoded) <= self.run.result_max_bytes
            checks = dict(zip(_AFTERWARDS, (True, True, fits), strict=True))
            self._write("postconditions_checked", after, result={"checks": checks})
        else:
            stage: Stage = "postconditions" if finished.failure.code in _POSTCONDITIONS else "action"
            self._error(finished.failure, stage, event, after)
        self._conclude(started, event, after)

    def _error(
        self, failure: Failure, stage: Stage, event: Ended, after: StateSignature | None = None
    ) -> None:
        self.run.learn(*failure.named)
        frame = failure.tool_frame
        cause, ename = fault_of(failure, event.calls)
        details: dict[str, Any] = {"ename": failure.ename, "line": frame.lineno if frame else None}
        details |= {"hint": failure.hint} if failure.hint else {}
        if cause != failure.code or ename != failure.ename:  # that of a call
            details["cause"] = {"code": cause, "ename": ename}
        again = is_retryable(cause, ename)
        summary = failure.summary
        error = error_object(failure.code, stage, summary, utc_now(), details=details, retryable=again)
        self._write("error_raised", after, error=error)

    def _conclude(self, started: Started, event: Ended, after: StateSignature) -> None:
        """Write evidence, the comparison of a re-run, and the observation that the policy judges; ask for a retry."""
        finished = event.finished
        pieces: list[Any] = [("state_after", self._state(started, after, finished.fingerprint))]
        if finished.failure is not None or self._critical:
            pieces += [] if self._critical and self._prepared else self._given(started)
            pieces += evidence_of(event)
        self._keep(pieces, after)
        if self._earlier is not None and self._started:
            result = compared(self._earlier, finished)
            self.run.append("assert_checked", step_id=self.step_id, after=after, result=result)
        failed = finished.failure is not None
        observation = Observation(after.state_key, failed, finished.fingerprint)
        self.run.observe(observation, self.step_id, self._before, after)
        fault = _passing_fault(finished.failure, event.calls, self.run.caps, self._acts, self._kind)
        if self._before is None or fault is None:
            return
        code, ename = fault
        verdict = self.run.retry(self._before.state_key, code, ename)
        if verdict.granted:
            tried = len(self.attempts) + 1
            metadata = {"code": code, "ename": ename, "count": tried, "wait_ms": verdict.wait_ms}
            self._write("retry_scheduled", metadata=metadata)
            self.retry_in_s = verdict.wait_ms / 1000

    def _given(self, started: Started) -> list[Any]:
        """Code and arguments, in full; the code of a proposal is already kept as such."""
        pieces: list[Any] = []
        if self._entry is not None and self._entry.revision != NO_REVISION:
            pieces.append(("code", self._entry.code))
        return [*pieces, ("arguments", msgspec.json.decode(started.arguments))]

    def _sign(self, started: Started, fingerprint: str | None, outputs: object = None) -> StateSignature:
        if self._hashed is None or self._hashed[0] != started.arguments:  # cleaned once for all of the step
            self._hashed = started.arguments, self._hashable(started.arguments)
        grants = msgspec.to_builtins(started.grants)
        return sign(
            tool_name=started.tool_name,
            persona=started.persona,
            code_hash=started.code_hash,
            arguments=self._hashed[1],
            fingerprint=fingerprint,
            outputs=None if outputs is None else self._hashable(msgspec.json.encode(outputs).decode()),
            worker=[started.isolation, self._mode, grants] if self._prepared else None,
        )

    def _hashable(self, encoded: str) -> Any:
        """Return a JSON text as the value to hash: cleaned, because a hash of a short text can be guessed."""
        if len(encoded) > _CLEANED_HASH_MAX_CHARS:
            return encoded
        return self.run.cleaner.clean(msgspec.json.decode(encoded), limit_bytes=1 << 30).value

    def _state(self, started: Started, signature: StateSignature, fingerprint: str | None) -> dict[str, Any]:
        """Return the partial state: only ids, codes and hashes, and nothing of the payload."""
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


def tags_of(entry: VaultEntry | None) -> list[str]:
    """Return a tool's type, its group and the flags that are set, as an action's tags."""
    if entry is None:
        return []
    flags = sorted(name for name, value in entry.flags.items() if value is True)
    return [entry.type, *([f"group:{entry.group}"] if entry.group else []), *flags]


def fault_of(failure: Failure, calls: Sequence[CallRecord]) -> tuple[str, str]:
    """Return code and exception of the failure: of the last call, if the tool passed its error on."""
    last = calls[-1] if calls and failure.ename == "ToolCallError" else None
    if last is None or last.success is not False:
        is_in_tool = not failure.frames or failure.frames[-1].in_tool
        return failure.code, failure.ename if is_in_tool else ""
    last_line = last.error.strip().rpartition("\n")[2]
    return last.error_code or "", last_line.partition(":")[0]


def evidence_of(event: Ended) -> list[Any]:
    """Failure, output and calls, complete except for values that differ from run to run."""
    finished, outputs = event.finished, event.outputs
    pieces: list[Any] = []
    if finished.failure is not None:
        pieces.append(("failure", msgspec.to_builtins(msgspec.structs.replace(finished.failure, secrets=[]))))
    for name in ("stdout", "stderr"):
        printed = "".join(str(o["text"]) for o in outputs if o.get("name") == name and "text" in o)
        if name == "stdout" and not printed:
            printed = finished.last_output
        pieces += [(name, printed)] if printed else []
    rich = [output for output in outputs if output.get("output_type") != "stream"]
    pieces += [("outputs", rich)] if rich else []
    volatile = {"trace_id", "started_at", "duration_ms", "type"}
    calls = [
        {name: value for name, value in msgspec.to_builtins(record).items() if name not in volatile}
        for record in event.calls
    ]
    return [*pieces, ("calls", calls)] if calls else pieces


def compared(earlier: Finished, finished: Finished) -> dict[str, Any]:
    """Compare both endings: the same failure, or success with the same value, as far as the log has it."""
    expected, actual = earlier.fingerprint or earlier.status, finished.fingerprint or finished.status
    same_value = bool(finished.failure) or earlier.result_summary == finished.result_summary
    same = expected == actual and same_value
    return {"expected": expected, "found": actual, "same": same}

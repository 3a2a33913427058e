"""Runs that are being written, under their policy.

A run is asked for. `with hk.run():` makes every execution inside it a step; `record=True` makes one execution a run of
its own. The folder is written as things happen, on the thread where they do.
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
from typing import Any

import msgspec

from healkit.config import Config
from healkit.contracts.execution import Finished, utc_now
from healkit.contracts.runs import (
    ExecutionMode,
    Halt,
    Observation,
    PolicyDefaults,
    PolicyVerdict,
    StateSignature,
    StepPolicy,
    details_of,
    error_object,
)
from healkit.errors import PolicyHalted, RunFolderError, RunNotAllowed
from healkit.rendering import plain
from healkit.runtime import run_audit
from healkit.runtime.run_audit import Appends, RunAudit, StepOf
from healkit.runtime.step_listener import UNRECORDED, StepListener
from healkit.runtime.steps import Retried, RunStep, StepKind
from healkit.sanitizer.cleaner import Cleaner
from healkit.tracing.run_folders import new_run_id
from healkit.tracing.run_manifests import manifest_for
from healkit.tracing.writer import RunWriter

#: Runs around the code of this context, innermost last.
_inside: ContextVar[tuple[OpenRun, ...]] = ContextVar("healkit_runs", default=())
MakePolicy = Callable[[PolicyDefaults | None], StepPolicy]


class OpenRun:
    """A run that goes on; made by `Healkit.run`. Leaving its `with` block finishes it.

    `run_id` names it, `folder` is where it is written, `problem` says what of it could not be.
    """

    def __init__(
        self,
        owner: Runs,
        writer: RunWriter,
        policy: StepPolicy,
        allow: Sequence[str],
        config: Config,
        audit: RunAudit | None = None,
    ) -> None:
        self.owner = owner
        self.run_id = writer.run_id
        self.folder: Path = writer.folder
        self.cleaner = owner.cleaner
        self.result_max_bytes = config.result_max_bytes
        self.append = writer.append
        self.keep = writer.keep
        self._writer, self._audit = writer, audit
        self._policy = policy
        self._allow = tuple(allow)
        self._lock = threading.Lock()
        self._steps = self._failures = self._proposals = 0
        self._halted: Halt | None = None
        self._last_state: StateSignature | None = None
        self._fault = ""

    @property
    def problem(self) -> str:
        """Sentence on what is missing in the record; empty when nothing is."""
        fault = f"The record of run {self.run_id!r} is not whole: {self._fault}." if self._fault else ""
        return self._writer.problem or fault or (self._audit.problem if self._audit else "")

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
        """Remember a mistake of the record's own; called instead of raising it."""
        self._fault = what

    def admit(self, tool_name: str) -> str:
        """Return the next step's id; raises `RunNotAllowed`, or `PolicyHalted` once the policy has ended the run."""
        if self._writer.closed:
            raise RunFolderError(f"Run {self.run_id!r} has ended.", hint="Begin another: with hk.run(): …")
        if not any(fnmatch.fnmatchcase(tool_name, pattern) for pattern in self._allow):
            allowed = ", ".join(map(repr, self._allow)) or "none"
            refused = RunNotAllowed(
                f"{tool_name!r} is not on the list of run {self.run_id!r}, which is {allowed}.",
                hint="Run it outside of this run, or begin one with allow=(…).",
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
            hint="Change something (the code, the arguments), then begin another run.",
        )

    def proposal(self, source: str) -> dict[str, Any]:
        """Count a proposal; return its source and its number in the run, for its event."""
        with self._lock:
            self._proposals += 1
            return {"proposal_source": source, "proposal_count": self._proposals}

    def policy_facts(self, state_key: str) -> dict[str, int]:
        """Return how near the run is to its caps: how often that failing state was observed, and the steps taken."""
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

        Refused where no step is left: the outcome reaches the caller then, and not a `PolicyHalted`.
        """
        with self._lock:
            if self._steps >= self._policy.defaults.hard_cap_steps:
                return PolicyVerdict(refusal="No step is left for another try.")
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
            known = {"phase": "after", "policy": self._facts(verdict.same_state_count)}
        self.append("observation_captured", step_id=step_id, before=before, after=after, metadata=known)
        if verdict.halt is not None:
            self.halt(verdict.halt, step_id, before, after)

    def finish(
        self, outcome: str = "completed", reason: str = "", after: StateSignature | None = None
    ) -> None:
        """Write the end and let go of the folder; called by the `with` block, and safe to call twice.

        after: the state at the end, where it is not the last that was observed.
        """
        outcome = "halted" if self._halted else outcome
        came: dict[str, Any] = {"outcome": outcome, "steps": self._steps, "failures": self._failures}
        ended = self._writer.finish(
            {**came, "reason": reason} if reason else came, after or self._last_state, hold=True
        )
        try:
            head = None if self._audit is None or ended is None else self._audit.finish()
            if head is not None:
                self._writer.anchor(head)
                run_audit.unmark(self.owner.runs_dir, self.run_id)
        finally:
            self._writer.release()
        self.owner.forget(self)

    def halt(
        self,
        halt: Halt,
        step_id: str | None,
        before: StateSignature | None,
        after: StateSignature | None,
    ) -> None:
        """Write that the policy has ended the run; the second time does nothing."""
        with self._lock:
            if self._halted is not None:
                return
            self._halted = halt
        known = {
            "reason": halt.rule,
            "state_key": halt.state_key,
            "count": halt.count,
            "threshold": halt.threshold,
        }
        numbers = {"rule": halt.rule, "count": halt.count, "threshold": halt.threshold}
        error = error_object(
            "POLICY_HALT", "policy", halt.reason, utc_now(), severity="critical", details=numbers
        )
        self.append(
            "policy_halt",
            step_id=step_id,
            before=before,
            after=after,
            error=error,
            metadata={"policy": known},
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
        state = "halted" if self._halted else "ended" if self._writer.closed else "going on"
        return f"<run {self.run_id}, {state}, {plain.count(self._steps, 'step')}, in {str(self.folder)!r}>"


class Runs:
    """Begins the runs of one `Healkit`.

    make_policy: the policy of each new run; the policies live on a higher floor, so they are handed in. make_cleaner:
    called by the first run, because a sanitiser's tables take a while to read. audit: called by the first run that is
    audited.
    """

    def __init__(
        self,
        config: Config,
        runs_dir: Path,
        make_cleaner: Callable[[], Cleaner],
        make_policy: MakePolicy,
        audit: Callable[[], Appends],
    ) -> None:
        self.config = config
        self.runs_dir = runs_dir
        self._make_cleaner = make_cleaner
        self._make_policy = make_policy
        self._audit = audit
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
        policy: PolicyDefaults | StepPolicy | None = None,
        mode: ExecutionMode = "live",
        parameters: Mapping[str, Any] | None = None,
        audited: StepOf | None = None,
    ) -> OpenRun:
        """Begin a run with its folder; raises `RunFolderError`, `RunExists` or `RunLocked`.

        policy: caps of this run's own, or the policy itself, of a loop that asks it more than a step does. mode:
            `dry_run` where whatever comes of it is only shown. parameters: those of the profile, for the manifest.
        audited: makes the audit's entries of the run's events; without it, the run is not audited.
        """
        allow = (allow,) if isinstance(allow, str) else allow
        now = utc_now()
        judge = self._make_policy(policy) if isinstance(policy, PolicyDefaults | None) else policy
        manifest = manifest_for(
            new_run_id(now) if run_id is None else run_id,
            now,
            profile,
            self.config,
            self.cleaner,
            mode=mode,
            policy=judge.defaults,
            allow=allow,
            parameters=parameters or {},
        )
        audit = None if audited is None else RunAudit(self._audit(), audited)
        head = None if audit is None else audit.begin()
        if head is not None:
            manifest = msgspec.structs.replace(manifest, audit=head)
        durable = self.config.synchronous == "FULL"
        listeners = {} if audit is None else {"heard": audit.heard}
        writer = RunWriter(self.runs_dir, manifest, self.cleaner, durable=durable, **listeners)
        if head is not None:
            with contextlib.suppress(OSError):  # a disk that is full now is told by the events
                run_audit.mark(self.runs_dir, writer.run_id)
        run = OpenRun(self, writer, judge, allow, self.config, audit)
        self._open.add(run)
        return run

    @contextlib.contextmanager
    def step(
        self,
        record: bool | OpenRun | None,
        kind: StepKind = "run",
        earlier: Finished | None = None,
        retry: bool | PolicyDefaults = False,
    ) -> Iterator[StepListener]:
        """Give one execution its listener: a step of a run, a run of its own, retries without one, or none.

        record: a run, whether to make one, or None: the run around the caller, else as `record_runs` says. retry: the
        policy where there is no run yet, or whether there is one.
        """
        policy = retry if isinstance(retry, PolicyDefaults) else None
        around = self.around() if record is None else None
        if isinstance(record, OpenRun) or around is not None:
            run = record if isinstance(record, OpenRun) else around
            assert run is not None  # one of the two is
            yield RunStep(run, kind, earlier)
        elif record or (record is None and self.config.record_runs):
            yield from self._alone(kind, earlier, policy, demanded=bool(record))
        elif retry:
            yield Retried(self._make_policy(policy), kind)
        else:
            yield UNRECORDED

    def around(self) -> OpenRun | None:
        """Return the innermost run of this Healkit that the caller is inside of."""
        return next((run for run in reversed(_inside.get()) if run.owner is self), None)

    def forget(self, run: OpenRun) -> None:
        """Drop a run that has ended; called by it."""
        self._open.discard(run)

    def close(self) -> None:
        """End the runs that are still open; called when the Healkit is closed."""
        for run in list(self._open):
            run.finish("abandoned", "the Healkit was closed before the run had ended")

    def _alone(
        self, kind: StepKind, earlier: Finished | None, policy: PolicyDefaults | None, *, demanded: bool
    ) -> Iterator[StepListener]:
        try:
            run = self.begin(kind, policy=policy)
        except RunFolderError as error:
            if demanded:
                raise
            # Not asked for by name: run the tool, and warn its caller.
            yield _Untold(str(error))
            return
        try:
            yield RunStep(run, kind, earlier)
        except BaseException as error:
            run.finish("aborted", f"{type(error).__name__}: {error}")
            raise
        run.finish()


class _Untold(StepListener):
    """An execution that was to be recorded and could not be."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

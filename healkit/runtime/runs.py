"""Runs that are being written, under their policy.

A run is asked for. `with hk.run():` makes every execution inside it a step; `record=True` makes one execution a run of
its own. The folder is written as things happen, on the thread where they do.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

from healkit import __version__
from healkit.config import Config
from healkit.contracts.encoding import to_jsonable
from healkit.contracts.events import SCHEMA_VERSION, error_object
from healkit.contracts.records import Finished, utc_now
from healkit.contracts.run_policy import Halt, Observation, StepPolicy
from healkit.contracts.runs import ExecutionMode, PolicyDefaults, RedactionPolicy, RunManifest
from healkit.contracts.signature import StateSignature
from healkit.errors import PolicyHalted, RunFolderError, RunNotAllowed
from healkit.rendering import plain
from healkit.runtime.steps import UNRECORDED, RunStep, StepKind, StepListener
from healkit.sanitizer.cleaner import Cleaner
from healkit.tracing.run_folders import new_run_id
from healkit.tracing.writer import RunWriter

#: Runs around the code of this context, innermost last.
_inside: ContextVar[tuple[OpenRun, ...]] = ContextVar("healkit_runs", default=())
MakePolicy = Callable[[PolicyDefaults | None], StepPolicy]


class OpenRun:
    """A run that goes on; made by `Healkit.run`. Leaving its `with` block finishes it.

    `run_id` names it, `folder` is where it is written, `problem` says what of it could not be.
    """

    def __init__(
        self, owner: Runs, writer: RunWriter, policy: StepPolicy, allow: Sequence[str], config: Config
    ) -> None:
        self.owner = owner
        self.run_id = writer.run_id
        self.folder: Path = writer.folder
        self.cleaner = owner.cleaner
        self.result_max_bytes = config.result_max_bytes
        self.append = writer.append
        self.keep = writer.keep
        self._writer = writer
        self._policy = policy
        self._allow = tuple(allow)
        self._lock = threading.Lock()
        self._steps = self._failures = 0
        self._halted: Halt | None = None
        self._fault = ""

    @property
    def problem(self) -> str:
        """Sentence on what is missing in the record; empty when nothing is."""
        fault = f"The record of run {self.run_id!r} is not whole: {self._fault}." if self._fault else ""
        return self._writer.problem or fault

    @property
    def halted(self) -> Halt | None:
        """Reason why the policy has ended the run, or None."""
        return self._halted

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
            self.append(
                "error_raised", error=error_object(refused.code, "preconditions", refused.message, utc_now())
            )
            raise refused
        with self._lock:
            verdict = self._policy.step()
            if verdict.halt is None:
                self._steps += 1
                return f"s{self._steps}"
        self._halt(verdict.halt, None, None, None)
        raise PolicyHalted(
            f"Run {self.run_id!r} was ended by its policy ({verdict.halt.rule}): {verdict.halt.reason}",
            hint="Change something (the code, the arguments), then begin another run.",
        )

    def seen(self, state_key: str) -> int:
        """Return how often that failing state was observed in this run."""
        with self._lock:
            return self._policy.seen(state_key)

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
        known = {"phase": "after", "same_state_count": verdict.same_state_count}
        self.append("observation_captured", step_id=step_id, before=before, after=after, metadata=known)
        if verdict.halt is not None:
            self._halt(verdict.halt, step_id, before, after)

    def finish(self, outcome: str = "completed", reason: str = "") -> None:
        """Write the end and let go of the folder; called by the `with` block, and safe to call twice."""
        outcome = "halted" if self._halted else outcome
        came: dict[str, Any] = {"outcome": outcome, "steps": self._steps, "failures": self._failures}
        self._writer.finish({**came, "reason": reason} if reason else came)
        self.owner.forget(self)

    def _halt(
        self,
        halt: Halt,
        step_id: str | None,
        before: StateSignature | None,
        after: StateSignature | None,
    ) -> None:
        with self._lock:
            if self._halted is not None:
                return
            self._halted = halt
        details = {
            "rule": halt.rule,
            "state_key": halt.state_key,
            "count": halt.count,
            "threshold": halt.threshold,
        }
        error = error_object("POLICY_HALT", "policy", halt.reason, utc_now(), details=details)
        self.append("policy_halt", step_id=step_id, before=before, after=after, error=error)

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
    called by the first run, because a sanitiser's tables take a while to read.
    """

    def __init__(
        self, config: Config, runs_dir: Path, make_cleaner: Callable[[], Cleaner], make_policy: MakePolicy
    ) -> None:
        self.config = config
        self.runs_dir = runs_dir
        self._make_cleaner = make_cleaner
        self._make_policy = make_policy
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
    ) -> OpenRun:
        """Begin a run with its folder; raises `RunFolderError`, `RunExists` or `RunLocked`.

        policy: caps of this run's own, or the policy itself, of a loop that asks it more than a step does. mode:
            `dry_run` where whatever comes of it is only shown.
        """
        allow = (allow,) if isinstance(allow, str) else allow
        now = utc_now()
        judge = self._make_policy(policy) if isinstance(policy, PolicyDefaults | None) else policy
        manifest = RunManifest(
            schema_version=SCHEMA_VERSION,
            run_id=new_run_id(now) if run_id is None else run_id,
            started_at=now,
            execution_profile=to_jsonable(str(profile))[0],
            execution_mode=mode,
            policy_defaults=judge.defaults,
            app_version=__version__,
            platform={
                "system": platform.system(),
                "machine": platform.machine(),
                "python": platform.python_version(),
            },
            allowlist=to_jsonable([str(pattern) for pattern in allow])[0],
            redaction_policy=RedactionPolicy(
                "raw" if self.config.trace_raw else "sanitised",
                self.config.payload_max_bytes,
                self.config.evidence_max_bytes,
            ),
        )
        durable = self.config.synchronous == "FULL"
        writer = RunWriter(self.runs_dir, manifest, self.cleaner, durable=durable)
        run = OpenRun(self, writer, judge, allow, self.config)
        self._open.add(run)
        return run

    @contextlib.contextmanager
    def step(
        self, record: bool | OpenRun | None, kind: StepKind = "run", earlier: Finished | None = None
    ) -> Iterator[StepListener]:
        """Give one execution its listener: a step of a run, a run of its own, or none.

        record: a run, whether to make one, or None: the run around the caller, else as `record_runs` says.
        """
        around = self.around() if record is None else None
        if isinstance(record, OpenRun) or around is not None:
            run = record if isinstance(record, OpenRun) else around
            assert run is not None  # one of the two is
            yield RunStep(run, kind, earlier)
        elif record or (record is None and self.config.record_runs):
            yield from self._alone(kind, earlier, demanded=bool(record))
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

    def _alone(self, kind: StepKind, earlier: Finished | None, *, demanded: bool) -> Iterator[StepListener]:
        try:
            run = self.begin(kind)
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

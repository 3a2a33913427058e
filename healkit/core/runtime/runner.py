"""Ways to execute: run, re-run, run with other code.

Every way to run a tool ends here: in one request to the executor, or in a batch of trials. The async methods are the
core; the others wait for them on healkit's own event loop, so that they work inside a notebook's running one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.config import Config, Mode
from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.execution import ExecutionData
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.runtime.calls import CallContext
from healkit.core.runtime.events import OnCall
from healkit.core.runtime.execution import Execution, arguments_of, ending_of, logged, nested_grants
from healkit.core.runtime.executor import ExecutionRequest, Executor
from healkit.core.sanitizer.cleaner import UNLIMITED
from healkit.core.store.entries import NO_REVISION, check_names, code_hash
from healkit.core.workers.worker import OnOutput
from healkit.errors import HealkitError, ToolExecutionError, check_whole
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.runs.runs import OpenRun, Runs
from healkit.parts.trials.shares import TrialResult
from healkit.parts.trials.trials import Trial, Trials

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault


class Runner:
    """Runs tools; `log` and `vault` are asked for where an earlier execution is repeated."""

    def __init__(
        self,
        executor: Executor,
        runs: Runs,
        trials: Trials,
        config: Config,
        log: Callable[[], Log],
        vault: Callable[[], Vault],
    ) -> None:
        self._executor, self._runs, self._trials = executor, runs, trials
        self._config, self._log, self._vault = config, log, vault

    def execute(
        self,
        tool_name: str,
        persona: str = "default",
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        mode: Mode | None = None,
        origin: str = "python",
        on_output: OnOutput | None = None,
        on_call: OnCall | None = None,
        record: bool | OpenRun | None = None,
        retry: bool | PolicyDefaults = False,
    ) -> Execution:
        """Run a tool in a restricted worker and return its outcome; never raises for what the tool does.

        mode: `worker` is a Jupyter kernel; `subprocess` a plain fresh interpreter under the same restrictions, which
            displays nothing. By default as the setting `mode` says.
        timeout: seconds of wall time, instead of the tool's own or the configured one.
        on_output: gets each output (an nbformat dict) as it comes; in a notebook, outputs are displayed by default.
        on_call: gets a `CallEvent` when a call through the bridge begins (`tool_start`) and when it has ended
            (`tool_end`), on a thread of healkit's; what it raises is dropped.
        record: a run makes this execution a step of it, True makes it a run of its own, False records no run. None
            makes it a step of the run around the call, if there is one, else does as `record_runs` says.
        retry: whether a call that failed because something outside did not answer is tried again, as a policy allows;
            by default twice, after 0.3 and 1 s. Never where the first try may have done something. In a run it is the
            run's policy that counts.

        Raises `ToolNotFound`, `PersonaNotFound`, `ArgumentsInvalid`, `VaultTampered`, `CodeDoesNotParse`,
        `IsolationUnavailable` or `WorkerStartFailed` when no tool could be run; those are on record too.
        """
        return self.perform(
            ExecutionRequest(
                tool_name,
                persona,
                {} if arguments is None else arguments,
                timeout_s=timeout,
                mode=mode,
                origin=origin,
                on_output=on_output,
                on_call=on_call,
                record=record,
                retry=retry,
            )
        )

    async def aexecute(
        self,
        tool_name: str,
        persona: str = "default",
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the tool's limit, kept by the worker, not this coroutine's
        mode: Mode | None = None,
        origin: str = "python",
        on_output: OnOutput | None = None,
        on_call: OnCall | None = None,
        record: bool | OpenRun | None = None,
        retry: bool | PolicyDefaults = False,
    ) -> Execution:
        """Do as `execute`, for async code in any event loop; cancelling it stops the worker.

        `on_output` is called on healkit's own thread.
        """
        return await self.aperform(
            ExecutionRequest(
                tool_name,
                persona,
                {} if arguments is None else arguments,
                timeout_s=timeout,
                mode=mode,
                origin=origin,
                on_output=on_output,
                on_call=on_call,
                record=record,
                retry=retry,
            )
        )

    async def aperform(self, request: ExecutionRequest) -> Execution:
        """Do as `perform`, for async code in any event loop; cancelling it stops the worker."""
        on_output = _cleaned(request, request.on_output)
        with self._runs.step(request.record, request.kind, request.earlier, request.retry) as first:
            sink = first
            while True:
                work = self._executor.perform(request, sink, on_output)
                try:
                    execution = await asyncio.wrap_future(background.loop.submit(work))
                except HealkitError as error:
                    if sink.retry_in_s is None:
                        _clean_error(request, error)
                        raise
                else:
                    if sink.retry_in_s is None:
                        return execution
                await asyncio.sleep(sink.retry_in_s)
                sink = sink.next_try()

    def execute_tool(
        self,
        tool_name: str,
        persona: str = "default",
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        origin: str = "python",
        on_output: OnOutput | None = None,
    ) -> Any:
        """Return the tool's value, or raise `ToolExecutionError` with its failure and log row; else as `execute`."""
        execution = self.execute(
            tool_name, persona, arguments, timeout=timeout, origin=origin, on_output=on_output
        )
        return value_or_raise(execution)

    async def aexecute_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Do as `execute_tool`, for async code."""
        return value_or_raise(await self.aexecute(*args, **kwargs))

    def rerun(
        self,
        log_id: int,
        *,
        timeout: float | None = None,
        mode: Mode | None = None,
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run the tool of a logged execution again, at its active revision, with the same arguments.

        One that another tool had called gets no more grants than it had then. A run folder says whether it ended as it
        had then. Raises `UsageInvalid` where there is no such row,
        `ArgumentsInvalid` where the log does not hold its arguments whole, and as `execute` does.
        """
        row = logged(self._log(), log_id)
        return self.perform(
            ExecutionRequest(
                row.tool_name,
                row.persona,
                arguments_of(row),
                timeout_s=timeout,
                mode=mode,
                origin="rerun",
                on_output=on_output,
                within=nested_grants(row),
                record=record,
                kind="rerun",
                earlier=ending_of(row),
            )
        )

    def replay(
        self,
        what: int | str | Path,
        *,
        active: bool = False,
        live: Sequence[str] = (),
        timeout: float | None = None,
        on_output: OnOutput | None = None,
    ) -> Execution:
        """Run a recorded execution again without making a call: each is answered as it was then.

        what: the execution's row in the log, or a file that `export_cassette` has written. It runs with the code that
        it had, and so ends as it did, unless chance or time decides; then it can be shown without the servers that it
        called. A folder that it may write can only be read. A file's code is its writer's: it has no grants, whatever
        the vault has of that name, and the vault stays as it is.
        active: run the tool's active revision instead: whether it is fixed by now. live: calls that may be made where
        they are not on record, as patterns (`["host.price"]`).

        Like a trial, it counts neither as a run of the tool nor as a failure of its. A call that is not on record ends
        it with `CALL_NOT_ON_RECORD`.

        Raises `UsageInvalid` where there is no such row, `LogFileError` for another file, `ArgumentsInvalid` where the
        log does not hold the arguments whole, and as `execute` does.
        """
        from healkit.parts.trials.cassette import Replay, read_reproduction, reproduction_of

        vault, providers = self._vault(), self._executor.providers
        if not isinstance(what, str | Path):
            check_whole("what", what)
        row = self._log().get(what) if isinstance(what, int) else None
        if isinstance(what, int):
            found = reproduction_of(self._log(), vault, what, providers)
        else:
            found = read_reproduction(what)
        foreign = None
        if row is None and not active:
            check_names(found.tool_name, found.persona)
            named = found.tool_name, found.persona, NO_REVISION, found.code, code_hash(found.code), found.type
            foreign = VaultEntry(*named, flags={"derived": ["input_schema"]})
        entry = foreign or vault.lookup(found.tool_name, found.persona)
        # What a revision did was somebody's to accept; what was only tried was not.
        tried = row is not None and row.revision is None and entry.code != found.code
        # A replay makes no call but those that `live` allows here: neither a file nor a provider's word adds any.
        cassette = msgspec.structs.replace(found.cassette, live=[])
        return self.perform(
            ExecutionRequest(
                found.tool_name,
                found.persona,
                values.remade(found.arguments),
                timeout_s=timeout,
                origin="trial",
                on_output=on_output,
                code=None if active or (entry.code == found.code and foreign is None) else found.code,
                within=None if row is None else nested_grants(row),
                kind="rerun",
                replay=Replay.of(Tape(cassette), found.run, live),
                files=() if tried and not active else None,
                foreign=foreign,
            )
        )

    def try_code(
        self,
        tool_name: str,
        code: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        persona: str = "default",
        timeout: float | None = None,
        mode: Mode | None = None,
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run other code in a tool's place, with its grants, before anything of it is saved.

        That you type it, or press Try, is your word for it; code that an agent or a model proposes is never run so.

        It is on record like any execution, under no revision. Raises `CodeDoesNotParse`, `ToolShapeError` or
        `SqlNotAllowed` for code that could not be saved either, and as `execute` does.
        """
        return self.perform(
            ExecutionRequest(
                tool_name,
                persona,
                {} if arguments is None else arguments,
                timeout_s=timeout,
                mode=mode,
                origin="try",
                on_output=on_output,
                code=code,
                record=record,
                kind="try",
            )
        )

    def trials(
        self,
        trials: Iterable[Trial | tuple[str, Mapping[str, Any]]],
        *,
        parallel: int | None = None,
        executor: concurrent.futures.Executor | None = None,
    ) -> list[TrialResult]:
        """Try many pairs of code and arguments, each in a restricted child of its own, and return their results.

        A trial has no kernel, no displays and nothing to call; it is restricted and recorded like any execution.
        parallel: how many at a time; by default as many as there are processors, or workers of the executor.
        executor: any `concurrent.futures.Executor`; its workers then do the work, in shares of about a second. Trials
            that went down with a worker are `lost` in their results; they are not run again.

        Raises `IsolationUnavailable`, also where a worker's machine cannot restrict trials as this one does,
        `WorkerStartFailed`, or `ConfigError` for an executor that cannot be used; what a trial does never raises.
        """
        chosen = [trial if isinstance(trial, Trial) else Trial(*trial) for trial in trials]
        results = background.loop.wait_for(self._trials.run(chosen, parallel, executor))
        return [_cleaned_trial(trial, result) for trial, result in zip(chosen, results, strict=True)]

    def run(
        self,
        profile: str = "default",
        *,
        run_id: str | None = None,
        allow: str | Sequence[str] = "*",
        policy: PolicyDefaults | None = None,
    ) -> OpenRun:
        """Begin a run: `with hk.run() as run:` writes every execution inside it to the folder `run.folder`.

        profile: a word of yours for what kind of run it is. allow: which tools it may execute, as patterns. policy: its
            caps; over one of them the run is ended, and each further execution in it raises `PolicyHalted`.

        Raises `RunFolderError`, or `RunExists` and `RunLocked` for a `run_id` that is taken.
        """
        return self._runs.begin(profile, run_id=run_id, allow=allow, policy=policy)

    def perform(self, request: ExecutionRequest) -> Execution:
        """Wait for a request's outcome, recorded as a step of a run where one is wanted."""
        on_output = request.on_output
        if on_output is None:
            on_output = background.notebook_display()
        on_output = _cleaned(request, on_output)
        with self._runs.step(request.record, request.kind, request.earlier, request.retry) as first:
            sink = first
            while True:
                start = functools.partial(self._executor.perform, request, sink)
                try:
                    execution = background.loop.run(start, on_output)
                except HealkitError as error:
                    if sink.retry_in_s is None:
                        _clean_error(request, error)
                        raise
                else:
                    if sink.retry_in_s is None:
                        return execution
                time.sleep(sink.retry_in_s)
                sink = sink.next_try()

    def call_from(self, tool_name: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run a vault tool that another one calls; called on a bridge thread, which waits."""
        request = ExecutionRequest(
            tool_name,
            context.persona,
            arguments,
            timeout_s=context.timeout_s,
            origin="tool",
            parent=context,
        )
        execution = background.loop.wait_for(self._executor.perform(request))
        return value_or_raise(execution.uncleaned)  # the tool that has called it gets what it said


def _cleaned(request: ExecutionRequest, on_output: OnOutput | None) -> OnOutput | None:
    """Return what gets the outputs as they come, without the secrets that are known by then."""
    if on_output is None or on_output is background.no_output:
        return on_output
    return cleaning.LiveOutputs(request.arguments, on_output)


def _cleaned_trial(trial: Trial, result: TrialResult) -> TrialResult:
    """Return a trial's result as it may be shown, with its value as it is."""
    if result.failure is None and not result.printed:
        return result
    cleaner = cleaning.sanitizer().of_record()
    cleaning.arguments(trial.arguments, cleaner)
    failure = None if result.failure is None else cleaning.failure(result.failure, cleaner)
    return msgspec.structs.replace(result, failure=failure, printed=cleaner.text(result.printed).value)


def _clean_error(request: ExecutionRequest, error: HealkitError) -> None:
    """Take the secrets of the arguments out of what a refusal says of them."""
    cleaner = cleaning.sanitizer().of_record()
    cleaner.clean(request.arguments, limit_bytes=UNLIMITED)  # whatever was given, also where it is none
    error.message, error.hint = cleaner.text(error.message).value, cleaner.text(error.hint).value
    error.args = (error.message,)


def value_or_raise(execution: ExecutionData) -> Any:
    """Return the value of an execution; raise `ToolExecutionError` when it has a failure instead."""
    if execution.failure is not None:
        raise ToolExecutionError(execution.label, execution.failure, execution.log_id, execution.trace_id)
    return execution.value

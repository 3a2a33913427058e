"""Ways to execute: run, re-run, run with other code.

Every way to run a tool ends here, in one request to the executor or in a batch of trials. The async methods do the
work. The others wait for them on healkit's own event loop, so that they also work in a notebook, whose loop is running.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from healkit.config import Mode
from healkit.core.contracts.execution import ExecutionData
from healkit.core.rendering import cleaning
from healkit.core.runtime import background
from healkit.core.runtime.calls import CallContext
from healkit.core.runtime.events import OnCall, OpenRun, RetryPolicy, Steps
from healkit.core.runtime.execution import Execution, arguments_of, ending_of, logged, nested_grants
from healkit.core.runtime.executor import ExecutionRequest, Executor
from healkit.core.secrets.cleaner import UNLIMITED
from healkit.core.workers.worker import OnOutput
from healkit.errors import HealkitError, ToolExecutionError

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log


class Runner:
    """Runs tools; `log` is read when an earlier execution is repeated. `steps` returns the sink of each execution."""

    def __init__(
        self,
        executor: Executor,
        steps: Steps,
        log: Callable[[], Log],
    ) -> None:
        self._executor, self._steps, self._log = executor, steps, log

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
        retry: bool | RetryPolicy = False,
    ) -> Execution:
        """Run a tool in a restricted worker and return its outcome; never raises for what the tool does.

        mode: `worker` is a Jupyter kernel; `subprocess` a plain fresh interpreter with the same restrictions, which
            displays nothing. The default is the setting `mode`.
        timeout: Wall time in seconds, instead of the tool's own or the configured limit.
        on_output: Gets each output (an nbformat dict) as it arrives; in a notebook, outputs are displayed by default.
        on_call: Gets a `CallEvent` when a call through the bridge begins (`tool_start`) and when it ends (`tool_end`).
            It runs on a thread of healkit, and its exceptions are ignored.
        record: A run adds this execution as a step, True creates a new run, False records no run. None uses the run
            around the call, if there is one, else the setting `record_runs`.
        retry: Whether to retry a call that failed because something outside did not answer. A policy sets how often; by
            default twice, after 0.3 and 1 s. A call is not retried if the first try may have had an effect. In a run,
            the run's policy applies.

        Raises `ToolNotFound`, `PersonaNotFound`, `ArgumentsInvalid`, `VaultTampered`, `CodeDoesNotParse`,
        `IsolationUnavailable` or `WorkerStartFailed` if no tool could run; these calls are recorded too.

        Example:
        >>> hk.execute("ratio", arguments={"hits": 3, "games": 4}).value
        0.75
        >>> outcome = hk.execute("ratio", arguments={"hits": 3, "games": 0})
        >>> outcome.ok, outcome.failure.summary
        (False, 'ZeroDivisionError: division by zero')
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
        timeout: float | None = None,  # noqa: ASYNC109 - the tool's limit, enforced by the worker, not this coroutine's
        mode: Mode | None = None,
        origin: str = "python",
        on_output: OnOutput | None = None,
        on_call: OnCall | None = None,
        record: bool | OpenRun | None = None,
        retry: bool | RetryPolicy = False,
    ) -> Execution:
        """Run a tool like `execute`, for async code in any event loop; cancelling it stops the worker.

        `on_output` is called on healkit's own thread.

        Example:
        >>> async def both():
        ...     inputs = [{"values": [1, 2]}, {"values": [3, 4]}]
        ...     return await asyncio.gather(*[hk.aexecute("mean", arguments=one) for one in inputs])
        >>> [execution.value for execution in asyncio.run(both())]
        [1.5, 3.5]
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
        """Run a request like `perform`, for async code in any event loop; cancelling it stops the worker."""
        on_output = _cleaned(request, request.on_output)
        with self._steps.step(request.record, request.kind, request.earlier, request.retry) as first:
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
        """Return the tool's value, or raise `ToolExecutionError` with its failure and log row; else like `execute`.

        Example:
        >>> hk.execute_tool("mean", arguments={"values": [1, 2, 6]})
        3.0
        >>> hk.execute_tool("ratio", arguments={"hits": 3, "games": 0})
        Traceback (most recent call last):
            ...
        healkit.errors.ToolExecutionError: ratio v1 failed: ZeroDivisionError: division by zero
        """
        execution = self.execute(
            tool_name, persona, arguments, timeout=timeout, origin=origin, on_output=on_output
        )
        return value_or_raise(execution)

    async def aexecute_tool(self, *args: Any, **kwargs: Any) -> Any:
        """Run a tool like `execute_tool`, for async code: return its value, or raise `ToolExecutionError`.

        The arguments are those of `execute_tool`.

        Example:
        >>> asyncio.run(hk.aexecute_tool("mean", arguments={"values": [1, 2, 6]}))
        3.0
        """
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

        An execution that another tool called gets no more grants than it had then. A run folder records whether it
        ended in the same way. Raises `UsageInvalid` if there is no such row, `ArgumentsInvalid` if the log does not
        have its complete arguments, and the errors of `execute`.

        Example:
        >>> _ = hk.vault.add("first", "def first(names: list): return names[1]")
        >>> wrong = hk.execute("first", arguments={"names": ["Ada"]})
        >>> _ = hk.vault.patch("first", "def first(names: list): return names[0]")
        >>> hk.rerun(wrong.log_id).value
        'Ada'
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
        """Run other code in place of a tool, with its grants, without saving it.

        By typing the code, or pressing Try, you approve it; code that an agent or a model proposes never runs in this
        way.

        It is recorded like any execution, without a revision. Raises `CodeDoesNotParse`, `ToolShapeError` or
        `SqlNotAllowed` for code that could not be saved either, and the errors of `execute`.

        Example:
        >>> careful = "def ratio(hits, games): return hits / games if games else None"
        >>> hk.try_code("ratio", careful, {"hits": 3, "games": 0}).ok
        True
        >>> hk.vault.lookup("ratio").revision
        1
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

    def perform(self, request: ExecutionRequest) -> Execution:
        """Wait for a request's outcome, recorded as a step of a run if one is wanted."""
        on_output = request.on_output
        if on_output is None:
            on_output = background.notebook_display()
        on_output = _cleaned(request, on_output)
        with self._steps.step(request.record, request.kind, request.earlier, request.retry) as first:
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
        return value_or_raise(execution.uncleaned)  # the calling tool gets the uncleaned message


background.show_parameters(Runner.aexecute_tool, Runner.execute_tool)


def _cleaned(request: ExecutionRequest, on_output: OnOutput | None) -> OnOutput | None:
    """Return a function that gets the live outputs without the secrets that are known by then."""
    if on_output is None or on_output is background.no_output:
        return on_output
    return cleaning.LiveOutputs(request.arguments, on_output)


def _clean_error(request: ExecutionRequest, error: HealkitError) -> None:
    """Remove the secrets of the arguments from the message of a refusal."""
    cleaner = cleaning.sanitizer().of_record()
    cleaner.clean(request.arguments, limit_bytes=UNLIMITED)  # also if the arguments are not a mapping
    error.message, error.hint = cleaner.text(error.message).value, cleaner.text(error.hint).value
    error.args = (error.message,)


def value_or_raise(execution: ExecutionData) -> Any:
    """Return the value of an execution; raise `ToolExecutionError` if it has a failure instead."""
    if execution.failure is not None:
        raise ToolExecutionError(execution.label, execution.failure, execution.log_id, execution.trace_id)
    return execution.value

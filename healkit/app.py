"""Healkit: builds the parts, owns them, and is the face they have together."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import dataclasses
import functools
import weakref
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.config import Config
from healkit.connecting import Connecting
from healkit.contracts.records import Finished, Grants
from healkit.contracts.runs import PolicyDefaults
from healkit.errors import ToolExecutionError
from healkit.healing.policy import Policy
from healkit.mending import Mending
from healkit.reading import Reading
from healkit.runtime import engine
from healkit.runtime.builtins import LogTools
from healkit.runtime.display import notebook_display
from healkit.runtime.execution import Execution
from healkit.runtime.executor import Executor
from healkit.runtime.mcp_servers import MCPServers
from healkit.runtime.providers import HostFunctions, VaultTools
from healkit.runtime.recorder import Recorder
from healkit.runtime.request import Mode, OnOutput, Request, request_for
from healkit.runtime.router import CallContext
from healkit.runtime.runs import OpenRun, Runs
from healkit.runtime.steps import StepKind
from healkit.runtime.traces import Traces
from healkit.runtime.trials import Trial, TrialResult, Trials
from healkit.store.database import Database, resolve_url
from healkit.store.grants import keep_records_apart
from healkit.store.lookup import Lookup
from healkit.store.newest import Newest
from healkit.tracing.run_folders import runs_folder
from healkit.workers.granting import check_grants

if TYPE_CHECKING:
    from healkit.contracts.doctor import DoctorReport, Status
    from healkit.seeding import SeedReport
    from healkit.store.log import Log
    from healkit.store.requests import Requests
    from healkit.store.vault import Vault


class Healkit(Reading, Connecting, Mending):
    """Everything healkit does, on one database.

    db: a SQLAlchemy URL, or the path of a SQLite file. None takes `HEALKIT_DB`, else the nearest `healkit.db` upward
        from the working directory, else the one in the user's data folder.
    config: limits and isolation; by default from the environment.
    create: whether a database that does not exist yet is made.

    Raises a `DatabaseError` when the database cannot be opened, and `ConfigError` for settings that cannot work.
    """

    def __init__(
        self, db: str | Path | None = None, *, config: Config | None = None, create: bool = True
    ) -> None:
        self.config = config or Config.from_environment()
        self._database = Database(
            resolve_url(db), wait_s=self.config.log_wait_s, synchronous=self.config.synchronous, create=create
        )
        self.traces = Traces(self._database, self.config)
        self._recorder = Recorder(self._database, self.config, self.traces.tracer, self.traces.notify)
        self._recorder.ingest()
        self._recorder.recover_orphans()
        self._newest = Newest(self._database, self._recorder.ingest)
        self._executor = Executor(
            Lookup(self._database, lambda: self.vault),
            self._recorder,
            self.config,
            self._database.url,
            lambda: engine.pool_for(self.config),
        )
        self._runs = Runs(
            self.config, runs_folder(self.config, self.path), lambda: self.traces.tracer.cleaner, Policy
        )
        self._trials = Trials(self._recorder, self.config)
        self._host = HostFunctions()
        self._executor.providers |= {
            "host": self._host,
            "vault": VaultTools(lambda: self.vault, self._execute_nested, self.config.max_depth),
            "healkit": LogTools(lambda: self.vault, lambda: self.log),
        }
        self._mcp = MCPServers(self._executor.providers, engine.loop.submit)
        #: Whether `close` was called; nothing can be executed any more.
        self.closed = False
        self.traces.start()
        _open.add(self)

    # What an execution has no use for is loaded when it is first asked for.

    @functools.cached_property
    def vault(self) -> Vault:
        """The tools and their revisions."""
        from healkit.store.vault import Vault

        return Vault(self._database, self._check_grants)

    @functools.cached_property
    def log(self) -> Log:
        """Every execution on record."""
        from healkit.store.log import Log

        return Log(
            self._database,
            refresh=self._recorder.ingest,
            retention_days=self.config.retention_days,
            retention_rows=self.config.retention_rows,
        )

    @functools.cached_property
    def requests(self) -> Requests:
        """Patches that wait for the user's word."""
        from healkit.store.requests import Requests

        return Requests(self._database)

    @property
    def runs_dir(self) -> Path:
        """Where run folders go."""
        return self._runs.runs_dir

    @property
    def url(self) -> str:
        """The database's URL."""
        return self._database.url

    @property
    def path(self) -> Path | None:
        """The database's file, or None where it is on a server."""
        return self._database.path

    def execute(
        self,
        tool_name: str,
        persona: str = "default",
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        mode: Mode = "worker",
        origin: str = "python",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """Run a tool in a restricted worker and return its outcome; never raises for what the tool does.

        mode: `worker` is a Jupyter kernel; `subprocess` a plain fresh interpreter under the same restrictions, which
            displays nothing.
        timeout: seconds of wall time, instead of the tool's own or the configured one.
        on_output: gets each output (an nbformat dict) as it comes; in a notebook, outputs are displayed by default.
        record: a run that this is a step of, or whether it is a run of its own; by default the run around it, if any,
            else as the configuration says.

        Raises `ToolNotFound`, `PersonaNotFound`, `ArgumentsInvalid`, `VaultTampered`, `CodeDoesNotParse`,
        `IsolationUnavailable` or `WorkerStartFailed` when no tool could be run; those are on record too.
        """
        request = request_for(tool_name, persona, arguments, timeout, origin, mode)
        return self._perform(request, on_output, record)

    async def aexecute(
        self,
        tool_name: str,
        persona: str = "default",
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the tool's limit, kept by the worker, not this coroutine's
        mode: Mode = "worker",
        origin: str = "python",
        on_output: OnOutput | None = None,
        record: bool | OpenRun | None = None,
    ) -> Execution:
        """`execute` for async code, in any event loop; cancelling it stops the worker.

        `on_output` is called on healkit's own thread.
        """
        request = request_for(tool_name, persona, arguments, timeout, origin, mode)
        with self._runs.step(record) as step:
            work = self._executor.execute(dataclasses.replace(request, on_output=on_output, step=step))
            return await asyncio.wrap_future(engine.loop.submit(work))

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
        """The tool's value, or `ToolExecutionError` with its failure and the log's row; else as `execute`."""
        execution = self.execute(
            tool_name, persona, arguments, timeout=timeout, origin=origin, on_output=on_output
        )
        return value_or_raise(execution)

    async def aexecute_tool(self, *args: Any, **kwargs: Any) -> Any:
        """`execute_tool` for async code."""
        return value_or_raise(await self.aexecute(*args, **kwargs))

    def trials(
        self,
        trials: Iterable[Trial | tuple[str, Mapping[str, Any]]],
        *,
        parallel: int | None = None,
        executor: concurrent.futures.Executor | None = None,
    ) -> list[TrialResult]:
        """Try many pairs of code and arguments, each in a restricted child of its own, and return what became of each.

        A trial has no kernel, no displays and nothing to call; it is restricted and recorded like any execution.
        parallel: how many at a time; by default as many as there are processors.
        executor: any `concurrent.futures.Executor`; its workers then do the work, a share each.

        Raises `IsolationUnavailable` or `WorkerStartFailed`; what a trial does never raises.
        """
        chosen = [trial if isinstance(trial, Trial) else Trial(*trial) for trial in trials]
        return engine.loop.submit(self._trials.run(chosen, parallel, executor)).result()

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

    def seed(self, *, reset: bool = False, debug_tools_only: bool = False) -> SeedReport:
        """Put the debug tools, the samples and the gallery into the vault; twice changes nothing."""
        from healkit.seeding import seed

        return seed(self._database, self.vault, reset=reset, debug_tools_only=debug_tools_only)

    def status(self) -> Status:
        """Where the database is, what is in it, which isolation is in force, and what is wrong, if anything."""
        from healkit.doctor import status_of

        tools, traces = len(self.vault.names()), self.traces.state()
        found = status_of(self.url, self.config, tools, self.log, self._recorder.problem, traces)
        return dataclasses.replace(found, requests=self.requests.waiting())

    def doctor(self) -> DoctorReport:
        """What this machine can enforce, tried for real."""
        from healkit.doctor import examine

        return examine(self.config)

    def close(self) -> None:
        """End the MCP servers and close the database; safe to call twice."""
        if not self.closed:
            self.closed = True
            self._runs.close()
            self._mcp.close()
            self._recorder.close()
            self.traces.close()
            self._database.close()

    def __enter__(self) -> Healkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _perform(
        self,
        request: Request,
        on_output: OnOutput | None,
        record: bool | OpenRun | None,
        kind: StepKind = "run",
        earlier: Finished | None = None,
    ) -> Execution:
        """Wait for a request's outcome, recorded as a step of a run where one is wanted."""
        if on_output is None and self.config.show_outputs:
            on_output = notebook_display()
        with self._runs.step(record, kind, earlier) as step:

            def start(emit: OnOutput, stop: asyncio.Event) -> Coroutine[Any, Any, Execution]:
                return self._executor.execute(
                    dataclasses.replace(request, on_output=emit, stop=stop, step=step)
                )

            return engine.loop.run(start, on_output)

    def _check_grants(self, grants: Grants) -> None:
        """Raise `ConfigError` for grants that no tool may have on this machine, or beside these records."""
        keep_records_apart(grants, None, [self._runs.runs_dir])
        check_grants(grants)

    def _execute_nested(self, tool_name: str, arguments: dict[str, Any], context: CallContext) -> Any:
        """A vault tool called by another one; on a bridge thread, which waits."""
        request = Request(
            tool_name,
            context.persona,
            arguments,
            timeout_s=context.timeout_s,
            origin="tool",
            parent_trace_id=context.trace_id,
            depth=context.depth + 1,
        )
        return value_or_raise(engine.loop.submit(self._executor.execute(request)).result())


#: Every Healkit that is open, to be closed when the interpreter ends.
_open: weakref.WeakSet[Healkit] = weakref.WeakSet()


def value_or_raise(execution: Execution) -> Any:
    """The value of an execution; raises `ToolExecutionError` when it has a failure instead."""
    if execution.failure is not None:
        raise ToolExecutionError(execution.label, execution.failure, execution.log_id, execution.trace_id)
    return execution.value


def holding(trace_id: str) -> tuple[Healkit, Execution] | None:
    """The open Healkit that has that execution on record, and the execution; None where none has."""
    for healkit in list(_open):
        row = None if healkit.closed else healkit.log.by_trace(trace_id)
        if row is not None:
            return healkit, healkit._with_calls(row)
    return None


@atexit.register
def _close_all() -> None:
    """Leave no folder and no open database behind; called by the interpreter as it ends."""
    for healkit in list(_open):
        healkit.close()
    engine.shutdown()

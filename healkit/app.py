"""`Healkit`: builds the parts, owns them, has their methods.

Each part has a name (`hk.vault`, `hk.log`, `hk.requests`, …). The methods that callers use most are also methods of
`Healkit`, with the same names.

A process has one Healkit for each database that is asked for without one: see `default_healkit`.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from healkit.config import Config
from healkit.contracts.records import Grants
from healkit.errors import ConfigError
from healkit.healing.run_policy import RunPolicy
from healkit.healing.service import HealService
from healkit.runtime import background
from healkit.runtime.debug_tools import LogTools
from healkit.runtime.execution import Execution
from healkit.runtime.executor import Executor
from healkit.runtime.history import History
from healkit.runtime.mcp.servers import MCPServers
from healkit.runtime.panels import Panels
from healkit.runtime.providers import HostFunctions, VaultTools
from healkit.runtime.recorder import Recorder
from healkit.runtime.runner import Runner
from healkit.runtime.runs import Runs
from healkit.runtime.traces import Traces
from healkit.runtime.trials import Trials
from healkit.store.database import Database, resolve_url
from healkit.store.fast_reads import EntryLookup, NewestRows
from healkit.store.grants import keep_records_apart
from healkit.tracing.run_folders import runs_folder
from healkit.workers.grant_checks import check_grants

if TYPE_CHECKING:
    from healkit.contracts.doctor import DoctorReport, Status
    from healkit.contracts.entries import VaultEntry
    from healkit.seeding import SeedReport
    from healkit.store.log_reader import Log
    from healkit.store.requests import Requests
    from healkit.store.vault import Vault

P = ParamSpec("P")
R = TypeVar("R")


def _method_of(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method of `Healkit` that calls `method` of its part, with the same signature and docstring."""

    @functools.wraps(method)
    def forward(self: Healkit, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(getattr(self, part), *args, **kwargs)

    @functools.wraps(method)
    async def aforward(self: Healkit, /, *args: Any, **kwargs: Any) -> Any:
        return await cast("Any", method)(getattr(self, part), *args, **kwargs)

    return cast("Any", aforward) if inspect.iscoroutinefunction(method) else forward


class Healkit:
    """Everything healkit does, on one database.

    db: a SQLAlchemy URL, or the path of a SQLite file. None takes `HEALKIT_DB`, else the nearest `healkit.db` upward
        from the working directory, else the one in the user's data folder.
    config: limits and isolation; by default from the environment.
    create: whether a database that does not exist yet is made.

    Its parts: `vault`, `log`, `requests`, `traces` and `history` (what is kept), `runner`, `runs`, `executor` and
    `recorder` (running tools), `host` and `mcp` (what tools can call), `healing`, `panels`, `config`, `database`.

    Raises a `DatabaseError` when the database cannot be opened, and `ConfigError` for settings that cannot work.
    """

    def __init__(
        self, db: str | Path | None = None, *, config: Config | None = None, create: bool = True
    ) -> None:
        self.config = config or Config.from_environment()
        self.database = Database(
            resolve_url(db), wait_s=self.config.log_wait_s, synchronous=self.config.synchronous, create=create
        )
        self.traces = Traces(self.database, self.config)
        self.recorder = Recorder(self.database, self.config, self.traces.tracer, self.traces.notify)
        self.recorder.recover_orphans()
        self.executor = Executor(
            EntryLookup(self.database, lambda: self.vault),
            self.recorder,
            self.config,
            self.database.url,
            lambda: background.pool_for(self.config),
        )
        self.runs = Runs(
            self.config, runs_folder(self.config, self.path), lambda: self.traces.tracer.cleaner, RunPolicy
        )
        trials = Trials(self.recorder, self.config)
        self.runner = Runner(self.executor, self.runs, trials, self.config, lambda: self.log)
        newest = NewestRows(self.database, self.recorder.ingest)
        self.history = History(self.config, newest, lambda: self.log, lambda: self.vault)
        self.healing = HealService(self)
        self.panels = Panels(self, lambda: self.runs.runs_dir)
        self.host = HostFunctions()
        self.executor.providers |= {
            "host": self.host,
            "vault": VaultTools(lambda: self.vault, self.runner.execute_nested, self.config.max_depth),
            "healkit": LogTools(lambda: self.vault, lambda: self.log),
        }
        self.mcp = MCPServers(self.executor.providers, background.loop.submit)
        #: Whether `close` was called; nothing can be executed any more.
        self.closed = False
        self.traces.start()
        _open.add(self)

    # Parts that an execution has no use for are loaded when they are first asked for.

    @functools.cached_property
    def vault(self) -> Vault:
        """Tools and their revisions."""
        from healkit.rendering.vault_entry import ShownVaultEntry
        from healkit.store.vault import Vault

        return Vault(self.database, self._check_grants, ShownVaultEntry)

    @functools.cached_property
    def log(self) -> Log:
        """Every execution on record."""
        from healkit.store.log_reader import Log

        return Log(
            self.database,
            refresh=self.recorder.ingest,
            retention_days=self.config.retention_days,
            retention_rows=self.config.retention_rows,
        )

    @functools.cached_property
    def requests(self) -> Requests:
        """Patches waiting for approval: `.pending()`, `.get(id)`, `.accept(id)`, `.decline(id, reason)`."""
        from healkit.store.requests import Requests

        return Requests(self.database)

    @property
    def runs_dir(self) -> Path:
        """Folder of the run folders."""
        return self.runs.runs_dir

    @property
    def url(self) -> str:
        """URL of the database."""
        return self.database.url

    @property
    def path(self) -> Path | None:
        """File of the database, or None where it is on a server."""
        return self.database.path

    # Running tools, in runtime/runner.py
    execute = _method_of("runner", Runner.execute)
    aexecute = _method_of("runner", Runner.aexecute)
    execute_tool = _method_of("runner", Runner.execute_tool)
    aexecute_tool = _method_of("runner", Runner.aexecute_tool)
    rerun = _method_of("runner", Runner.rerun)
    try_code = _method_of("runner", Runner.try_code)
    trials = _method_of("runner", Runner.trials)
    run = _method_of("runner", Runner.run)

    # What is on record, in runtime/history.py
    last_error = _method_of("history", History.last_error)
    last_error_report = _method_of("history", History.last_error_report)
    execution = _method_of("history", History.execution)
    executions = _method_of("history", History.executions)
    replay_of = _method_of("history", History.replay_of)
    plot = _method_of("history", History.plot)

    # Healing, in healing/service.py
    heal = _method_of("healing", HealService.heal)
    aheal = _method_of("healing", HealService.aheal)

    # What tools can call on the host, in runtime/providers.py and runtime/mcp/servers.py
    provide = _method_of("host", HostFunctions.provide)
    withdraw = _method_of("host", HostFunctions.withdraw)
    connect = _method_of("mcp", MCPServers.connect)
    connect_all = _method_of("mcp", MCPServers.connect_all)
    disconnect = _method_of("mcp", MCPServers.disconnect)
    servers = _method_of("mcp", MCPServers.servers)

    # Live panels, in runtime/panels.py
    browse = _method_of("panels", Panels.browse)
    patch_editor = _method_of("panels", Panels.patch_editor)
    heal_panel = _method_of("panels", Panels.heal_panel)
    timeline = _method_of("panels", Panels.timeline)

    def undo(self, tool: str, persona: str = "default") -> VaultEntry:
        """Take back a tool's active revision: a new one with the code that it was made from.

        Once more brings the code back. Raises `RevisionNotFound` where there is nothing to undo, and as
        `vault.revert` does.
        """
        return self.vault.undo(tool, persona)

    def seed(self, *, reset: bool = False, debug_tools_only: bool = False) -> SeedReport:
        """Put the debug tools, the samples and the gallery into the vault; twice changes nothing."""
        from healkit.seeding import seed

        return seed(self.database, self.vault, reset=reset, debug_tools_only=debug_tools_only)

    def status(self) -> Status:
        """Report where the database is, what is in it, the isolation in force, and problems."""
        from healkit.doctor import status_of

        tools, traces = len(self.vault.names()), self.traces.state()
        found = status_of(
            self.database.shown_url, self.config, tools, self.log, self.recorder.problem, traces
        )
        return dataclasses.replace(found, requests=self.requests.waiting())

    def doctor(self) -> DoctorReport:
        """Try what this machine can enforce, and report it."""
        from healkit.doctor import examine

        return examine(self.config)

    def close(self) -> None:
        """End the MCP servers and close the database; safe to call twice."""
        if not self.closed:
            self.closed = True
            self.runs.close()
            self.mcp.close()
            self.recorder.close()
            self.traces.close()
            self.database.close()

    def __enter__(self) -> Healkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_grants(self, grants: Grants) -> None:
        """Raise `ConfigError` for grants that no tool may have on this machine, or beside these records."""
        keep_records_apart(grants, None, [self.runs.runs_dir])
        check_grants(grants)


#: Every Healkit that is open, to be closed when the interpreter ends.
_open: weakref.WeakSet[Healkit] = weakref.WeakSet()
#: This process's own, by the URL of the database.
_defaults: dict[str, Healkit] = {}
_lock = threading.Lock()


def default_healkit(db: str | Path | None = None) -> Healkit:
    """Return this process's Healkit for a database, opened once; the default database when none is given."""
    url = resolve_url(db)
    with _lock:
        found = _defaults.get(url)
        if found is None or found.closed:
            found = _defaults[url] = Healkit(url)
        return found


def execute_tool(
    tool_name: str, persona: str = "default", arguments: Mapping[str, Any] | None = None, session: Any = None
) -> Any:
    """Run a tool on the default database, or on the one that a SQLModel or SQLAlchemy session is bound to.

    The session is only asked for its database: it is not used, committed or rolled back, whatever state it is in.
    Raises as `Healkit.execute_tool`.
    """
    return default_healkit(None if session is None else _database_of(session)).execute_tool(
        tool_name, persona, arguments
    )


def _database_of(session: Any) -> str:
    url = session.get_bind().engine.url
    if url.get_backend_name() == "sqlite" and not url.database:
        raise ConfigError(
            "The session's database is in memory, where no second connection can write a log.",
            hint="Use a file: create_engine('sqlite:///healkit.db').",
        )
    return str(url.render_as_string(hide_password=False))


def find_execution(trace_id: str) -> tuple[Healkit, Execution] | None:
    """Find the open Healkit that has that execution on record, and the execution; None where none has."""
    for healkit in list(_open):
        row = None if healkit.closed else healkit.log.by_trace(trace_id)
        if row is not None:
            return healkit, healkit.history.complete(row)
    return None


def release() -> None:
    """End what this process keeps warm: the default Healkits, all workers and servers, the event loop.

    Called on `%unload_ext healkit`. A Healkit that you made stays open, and starts what it needs again.
    """
    with _lock:
        defaults = list(_defaults.values())
        _defaults.clear()
    for healkit in defaults:
        healkit.close()
    background.shutdown()


@atexit.register
def _close_all() -> None:
    """Leave no folder and no open database behind; called by the interpreter as it ends."""
    for healkit in list(_open):
        healkit.close()
    background.shutdown()

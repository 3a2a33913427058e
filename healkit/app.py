"""`Healkit`: builds the parts, owns them, has their methods.

Each part has a name (`hk.vault`, `hk.log`, `hk.requests`, …). The methods that callers use most are also methods of
`Healkit`, with the same names.

A process has one of its own for each database that is asked for without one: `defaults.default_healkit`.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import inspect
import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import Grants
from healkit.core.contracts.vault import NO_GRANTS, UNTRUSTED_GRANTS
from healkit.core.runtime import background
from healkit.core.runtime.auto_retention import AutoRetention
from healkit.core.runtime.executor import Executor
from healkit.core.runtime.history import History, NewestRows
from healkit.core.runtime.providers import HostFunctions, LogTools, VaultTools
from healkit.core.runtime.recording import Recorder
from healkit.core.runtime.runner import Runner
from healkit.core.store.database import Database, resolve_url
from healkit.core.store.entries import EntryLookup, keep_records_apart, make_grants
from healkit.core.store.locations import views_folder
from healkit.core.store.spool import Spool
from healkit.core.store.trust import NO_AUTHORITY, trusted_folder
from healkit.core.workers.sandbox import check_grants
from healkit.errors import HealkitError
from healkit.faces.notebook.panels import Panels
from healkit.parts.decide.service import DecideService
from healkit.parts.heal.run_policy import RunPolicy
from healkit.parts.heal.service import HealService
from healkit.parts.learn.thread import ConsumerThread
from healkit.parts.mcp_client.mcp_servers import MCPServers
from healkit.parts.runs import run_audit
from healkit.parts.runs.run_folders import runs_folder
from healkit.parts.runs.runs import Runs
from healkit.parts.traces.traces import Traces
from healkit.parts.trials.trials import Trials
from healkit.parts.views.views import ViewKeeper

if TYPE_CHECKING:
    from healkit.core.contracts.doctor import DoctorReport, Status
    from healkit.core.contracts.vault import VaultEntry
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault
    from healkit.parts.decide.render_summaries import ShownFrameSummary, ShownTextSummary
    from healkit.parts.heal.requests import Requests
    from healkit.parts.learn.regress import RegressReport
    from healkit.parts.learn.service import LearningService
    from healkit.parts.learn.suggest import Suggester, Suggestions
    from healkit.parts.learn.tool_graph import ToolGraph
    from healkit.parts.runs.audit import Audit
    from healkit.parts.runs.contract import RunManifest
    from healkit.parts.runs.run_audit import StepOf
    from healkit.parts.teach.seeding import SeedReport
    from healkit.parts.views.views import Views


P = ParamSpec("P")
R = TypeVar("R")


def method_of(part: str, method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls `method` of the attribute `part`, with the same signature and docstring."""

    @functools.wraps(method)
    def forward(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(getattr(self, part), *args, **kwargs)

    @functools.wraps(method)
    async def aforward(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await cast("Any", method)(getattr(self, part), *args, **kwargs)

    return cast("Any", aforward) if inspect.iscoroutinefunction(method) else forward


class Healkit:
    """Everything healkit does, on one database.

    db: a SQLAlchemy URL, or the path of a SQLite file. None takes `HEALKIT_DB`, else the nearest `healkit.db` upward
        from the working directory, else the one in the user's data folder.
    config: limits and isolation; by default from the environment.
    create: whether a database that does not exist yet is made.

    Its parts: `vault`, `log`, `requests`, `views`, `audit`, `traces` and `history` (what is kept), `runner`, `runs`,
    `executor` and `recorder` (running tools), `host` and `mcp` (what tools can call), `healing`, `decisions`,
    `learning`, `panels`, `config`, `database`.

    Raises a `DatabaseError` when the database cannot be opened, and `ConfigError` for settings that cannot work.
    """

    def __init__(
        self, db: str | Path | None = None, *, config: Config | None = None, create: bool = True
    ) -> None:
        self.config = config or Config.from_environment()
        self.database = Database(
            resolve_url(db), wait_s=self.config.log_wait_s, synchronous=self.config.synchronous, create=create
        )
        if self.config.sanitize_log is None and self.database.path is None:
            # Others can read a database on a server.
            self.config = dataclasses.replace(self.config, sanitize_log=True)
        self.traces = Traces(self.database, self.config)
        self.learning_thread = ConsumerThread(lambda: self.learning.consumer)
        self.recorder = Recorder(self.database, self.config, self.traces.tracer, self._on_trace)
        self.recorder.recover_orphans()
        self.view_keeper = ViewKeeper(self.database, self.config)
        self.executor = Executor(
            EntryLookup(self.database, lambda: self.vault),
            self.recorder,
            self.config,
            self.database.url,
            lambda: background.pool_for(self.config),
            self.view_keeper,
            self._grants_in_force,
        )
        self.runs = Runs(
            self.config,
            runs_folder(self.config, self.path),
            lambda: self.traces.tracer.cleaner,
            RunPolicy,
            lambda: self.audit,
        )
        trials = Trials(self.recorder, self.config)
        self.runner = Runner(
            self.executor, self.runs, trials, self.config, lambda: self.log, lambda: self.vault
        )
        newest = NewestRows(self.database, self.recorder.ingest)
        self.history = History(self.config, newest, lambda: self.log, lambda: self.vault)
        self.healing = HealService(self)
        self.decisions = DecideService(self)
        self.panels = Panels(self, lambda: self.runs.runs_dir)
        self.host = HostFunctions()
        self.executor.providers |= {
            "host": self.host,
            "vault": VaultTools(lambda: self.vault, self.runner.call_from),
            "healkit": LogTools(lambda: self.vault, lambda: self.log),
        }
        self.mcp = MCPServers(self.executor.providers, background.loop.submit)
        #: Whether `close` was called; nothing can be executed any more.
        self.closed = False
        self._recover_audit()
        self.traces.start()
        self.retention = AutoRetention(self.database, self.config)
        self.retention.start()
        open_healkits.add(self)

    # Parts that an execution has no use for are loaded when they are first asked for.

    @functools.cached_property
    def vault(self) -> Vault:
        """Tools and their revisions."""
        from healkit.core.rendering.listings import ShownVaultEntry
        from healkit.core.store.vault import Vault

        return Vault(self.database, self._check_grants, ShownVaultEntry)

    @functools.cached_property
    def log(self) -> Log:
        """Every execution on record."""
        from healkit.core.store.log_reader import Log

        return Log(
            self.database,
            refresh=self.recorder.ingest,
            retention_days=self.config.retention_days,
            retention_rows=self.config.retention_rows,
        )

    @functools.cached_property
    def requests(self) -> Requests:
        """Patches waiting for approval: `.pending()`, `.get(id)`, `.accept(id)`, `.decline(id, reason)`."""
        from healkit.parts.heal.requests import Requests

        return Requests(self.database, self.audit)

    @functools.cached_property
    def audit(self) -> Audit:
        """Decisions in a hash-chained table: `.get(execution_id)`, `.summary()`, `.verify()`, `.append(…)`."""
        from healkit.parts.runs.audit import Audit
        from healkit.parts.runs.run_audit import KeptFiles
        from healkit.parts.runs.run_folders import anchored_heads

        kept = KeptFiles(
            self.runs.runs_dir,
            lambda: self.audit,
            steps_of,
            lambda view: self.view_keeper.views.fault(view) if self.view_keeper.has_views else "",
        )
        return Audit(
            self.database,
            lambda: self.traces.tracer.sanitizer,
            lambda: anchored_heads(self.runs.runs_dir),
            kept.fault,
        )

    @functools.cached_property
    def views(self) -> Views:
        """Data that tools were given or returned: `.list()`, `.load(name)`, `.put(frame, name)`, `.to_pandas(name)`."""
        from healkit.parts.views.views import Views

        return Views(self.view_keeper, self.recorder.secret_columns)

    @functools.cached_property
    def learning(self) -> LearningService:
        """Learning from the traces: `.sample(n)`, `.surprising()`, `.report()`, `.rebuild()`."""
        from healkit.parts.learn.service import LearningService

        return LearningService(self.database)

    @functools.cached_property
    def graph(self) -> ToolGraph:
        """Tools that go together: `.neighbours(tool)`, `.path(a, b)`, `.to_networkx()`, `.to_pandas()`."""
        from healkit.parts.learn.tool_graph import ToolGraph

        return ToolGraph(self.database, self.learning.catch_up)

    @functools.cached_property
    def suggester(self) -> Suggester:
        """Source of the suggestions."""
        from healkit.parts.learn.suggest import Suggester

        return Suggester(
            self.database,
            self.vault,
            self.learning.graph_learner,
            self.learning.catch_up,
            self.traces.tracer.intents,
        )

    def suggest(
        self,
        intent: str | None = None,
        *,
        after: str | Sequence[str] = (),
        k: int = 5,
        persona: str | None = None,
    ) -> Suggestions:
        """Suggest up to k tools to call, each with a sentence that says why.

        intent: what is wanted, in words. after: the tools that were called before, the last one last. persona: only the
        vault's tools that it can run. Raises `UsageInvalid` for a tool that is not known.
        """
        return self.suggester.suggest(intent, after=after, k=k, persona=persona)

    def trust(self) -> None:
        """Trust this database, once: from now on the grants in it count, and its requests can be accepted.

        healkit trusts a database that it makes. Raises `DatabaseError` where your data folder cannot be written.
        """
        self.database.trust()

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

    # Running tools, in core/runtime/runner.py
    execute = method_of("runner", Runner.execute)
    aexecute = method_of("runner", Runner.aexecute)
    execute_tool = method_of("runner", Runner.execute_tool)
    aexecute_tool = method_of("runner", Runner.aexecute_tool)
    rerun = method_of("runner", Runner.rerun)
    replay = method_of("runner", Runner.replay)
    try_code = method_of("runner", Runner.try_code)
    trials = method_of("runner", Runner.trials)
    run = method_of("runner", Runner.run)

    # What is on record, in core/runtime/history.py
    last_error = method_of("history", History.last_error)
    last_error_report = method_of("history", History.last_error_report)
    execution = method_of("history", History.execution)
    executions = method_of("history", History.executions)
    replay_of = method_of("history", History.replay_of)
    plot = method_of("history", History.plot)

    # Healing, in parts/heal/service.py
    heal = method_of("healing", HealService.heal)
    aheal = method_of("healing", HealService.aheal)
    heal_cell = method_of("healing", HealService.heal_cell)
    check_notebook = method_of("healing", HealService.check_notebook)

    # Decisions, in parts/decide/service.py
    decide = method_of("decisions", DecideService.decide)
    adecide = method_of("decisions", DecideService.adecide)

    # What tools can call on the host, in core/runtime/providers.py and parts/mcp_client/mcp_servers.py
    provide = method_of("host", HostFunctions.provide)
    withdraw = method_of("host", HostFunctions.withdraw)
    connect = method_of("mcp", MCPServers.connect)
    connect_all = method_of("mcp", MCPServers.connect_all)
    disconnect = method_of("mcp", MCPServers.disconnect)
    servers = method_of("mcp", MCPServers.servers)

    # Live panels, in faces/notebook/panels.py
    browse = method_of("panels", Panels.browse)
    patch_editor = method_of("panels", Panels.patch_editor)
    heal_panel = method_of("panels", Panels.heal_panel)
    timeline = method_of("panels", Panels.timeline)
    decide_panel = method_of("panels", Panels.decide_panel)
    audit_panel = method_of("panels", Panels.audit_panel)

    def _on_trace(self, send: bool) -> None:
        """Tell who waits for traces that there is one more; called by the recorder."""
        if send:
            self.traces.notify()
        self.learning_thread.notify()

    def export_cassette(self, log_id: int, path: str | Path, *, overwrite: bool = False) -> tuple[Path, int]:
        """Write an execution as a file that runs again anywhere, without what it called: `replay(path)`.

        Returns the file, and the number of secrets that are hidden in it: where there are any, it may end otherwise.
        Raises `UsageInvalid` where there is no such row, `ArgumentsInvalid` where the log does not hold the arguments
        whole, and `LogFileError` where the file cannot be written.
        """
        from healkit.parts.trials.cassette import reproduction_of, write_reproduction

        found = reproduction_of(self.log, self.vault, log_id, self.executor.providers)
        return write_reproduction(found, path, self.traces.tracer.sanitizer, overwrite=overwrite)

    def regress(
        self,
        tool: str,
        code: str | None = None,
        persona: str = "default",
        *,
        budget_s: float = 30.0,
        files: Sequence[str | Path] = (),
    ) -> RegressReport:
        """Run a tool's recorded runs again with other code, most telling first, until the budget is spent.

        code: by default the active code. Calls are answered from the record, and none is made. The report says which
        runs differ from the record, and after how many re-runs that was seen. budget_s: seconds of wall time. files:
        granted files that other code may read, as in `heal`; a run that needs another one is undecided.

        Raises `ConfigError` for a budget that is none, as `vault.lookup` does, and as `try_code` does for the code.
        """
        from healkit.parts.learn.regress import Regression

        entry = self.vault.lookup(tool, persona)
        named = tuple(map(str, files))
        return Regression(self.runner, self.log, entry, self.executor.providers, persona, named).report(
            code, budget_s
        )

    def undo(self, tool: str, persona: str = "default") -> VaultEntry:
        """Take back a tool's active revision: a new one with the code that it was made from.

        Once more brings the code back. Raises `RevisionNotFound` where there is nothing to undo, and as
        `vault.revert` does.
        """
        return self.vault.undo(tool, persona)

    def seed(self, *, reset: bool = False, debug_tools_only: bool = False) -> SeedReport:
        """Put the debug tools, the samples and the gallery into the vault; twice changes nothing."""
        from healkit.parts.teach.seeding import seed

        return seed(self.database, self.vault, reset=reset, debug_tools_only=debug_tools_only)

    def summarize(self, value: Any, *, top: int = 10) -> ShownTextSummary | ShownFrameSummary:
        """Summarise a text, a frame or an array, without a model; the same value always has the same summary.

        top: the number of entries in each list at most. What the sanitiser hides is left out. Raises `UsageInvalid` for
        a value of another kind.
        """
        from healkit.parts.decide.summaries import summarize

        return summarize(value, self.traces.tracer.sanitizer, top=top)

    def status(self) -> Status:
        """Report where the database is, what is in it, the isolation in force, and problems."""
        from healkit.core.doctor import status_of

        tools, traces = len(self.vault.names()), self.traces.state()
        found = status_of(
            self.database.shown_url,
            self.config,
            tools,
            self.log,
            self.recorder.problem
            or self.retention.problem
            or self.view_keeper.problem
            or self.learning_thread.problem,
            traces,
        )
        trust = self.database.why_trusted or f"no: {NO_AUTHORITY}"
        return dataclasses.replace(found, requests=self.requests.waiting(), trust=trust)

    def doctor(self) -> DoctorReport:
        """Try what this machine can enforce, and report it."""
        from healkit.core.doctor import examine

        return examine(self.config)

    def close(self) -> None:
        """End the MCP servers and close the database; safe to call twice."""
        if not self.closed:
            self.closed = True
            self.retention.close()
            self.learning_thread.close()
            self.runs.close()
            if "audit" in vars(self):
                self.audit.close()
            self.mcp.close()
            self.view_keeper.close()
            self.recorder.close()
            self.traces.close()
            self.database.close()

    def __repr__(self) -> str:
        """Name the database, its password masked; reads nothing."""
        return f"<Healkit on {self.database.where}{', closed' if self.closed else ''}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the state as a card; called by IPython's display formatter."""
        if self.closed:
            return {"text/plain": repr(self)}
        from healkit.core.rendering import listings
        from healkit.core.rendering.to_html import html_of
        from healkit.core.rendering.to_text import text_of

        card = listings.status(self.status())
        return {"text/plain": text_of(card), "text/html": html_of(card)}

    def __enter__(self) -> Healkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover_audit(self) -> None:
        """Append the entries that killed processes left in run folders; what cannot be, `audit.verify` names."""
        with contextlib.suppress(HealkitError):
            if not self.database.read_only:
                run_audit.recover(self.runs.runs_dir, lambda: self.audit, steps_of)

    def _check_grants(self, grants: Grants) -> None:
        """Raise `ConfigError` for grants that no tool may have on this machine, or beside these records."""
        if grants != NO_GRANTS:
            make_grants(grants)
            records = (
                *Spool(self.path or self.url).folders,
                self.runs.runs_dir,
                views_folder(self.path, self.url),
                trusted_folder(),
            )
            keep_records_apart(grants, self.path, records)
            check_grants(grants)

    def _grants_in_force(self, grants: Grants) -> Grants:
        """Return a tool's grants, checked anew where they are used; those of an untrusted database count for nothing.

        A path that has gone grants nothing, and is the tool's to meet. Raises `ConfigError` for other grants that are
        not possible any more, or never were.
        """
        if not self.database.trusted:
            return UNTRUSTED_GRANTS
        if grants != NO_GRANTS:
            make_grants(grants)  # a relative path is not there either
            there = {
                name: tuple(filter(os.path.lexists, getattr(grants, name))) for name in ("read", "write")
            }
            self._check_grants(msgspec.structs.replace(grants, **there))
        return grants


def steps_of(manifest: RunManifest) -> StepOf | None:
    """Return what makes the audit's entries of a run; None for a run that is not audited."""
    is_clean = manifest.redaction_policy.payload == "sanitised"
    profile = manifest.execution_profile
    if profile.name == "decide":
        from healkit.parts.decide.record import decide_steps

        return decide_steps(is_clean=is_clean)
    if profile.name == "heal":
        from healkit.parts.heal.record import heal_steps

        contents = profile.parameters.get("logged") is True
        return heal_steps(manifest.allowlist[0], contents=contents, is_clean=is_clean)
    return None


#: Every Healkit that is open, to be closed when the interpreter ends.
open_healkits: weakref.WeakSet[Healkit] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Leave no folder and no open database behind; called by the interpreter as it ends."""
    for healkit in list(open_healkits):
        healkit.close()
    background.shutdown()

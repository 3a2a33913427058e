"""`Healkit`: the services on one database, in one object.

Functions of the core are methods here. A part adds an attribute, which its plug-in names (`hooks.Specs.attributes`).
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from healkit import hooks
from healkit.config import Config
from healkit.core.runtime import background
from healkit.core.runtime.execution import History
from healkit.core.runtime.providers import HostFunctions
from healkit.core.runtime.runner import Runner
from healkit.core.store.database import Database, resolve_url
from healkit.errors import did_you_mean
from healkit.services import Services, attribute_makers

if TYPE_CHECKING:
    from healkit.core.contracts.vault import VaultEntry
    from healkit.core.store.log_reader import Log
    from healkit.core.store.vault import Vault
    from healkit.parts.decide.render_summaries import ShownFrameSummary, ShownTextSummary
    from healkit.parts.decide.service import DecideService
    from healkit.parts.doctor.records import DoctorReport, Status
    from healkit.parts.heal.requests import Requests
    from healkit.parts.heal.service import HealService
    from healkit.parts.learn.plugin import Regressions
    from healkit.parts.learn.service import LearningService
    from healkit.parts.learn.suggest import Suggester
    from healkit.parts.learn.tool_graph import ToolGraph
    from healkit.parts.maps.maps import Maps
    from healkit.parts.mcp_client.mcp_servers import MCPServers
    from healkit.parts.runs.audit import Audit
    from healkit.parts.runs.runs import Runs
    from healkit.parts.traces.traces import Traces
    from healkit.parts.trends.trends import Trends
    from healkit.parts.trials.replays import Replays
    from healkit.parts.trials.trials import Trials
    from healkit.parts.views.views import ViewKeeper, Views


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
    """Functions of healkit, on one database.

    db: A SQLAlchemy URL, or the path of a SQLite file. None takes `HEALKIT_DB`, else the nearest `healkit.db` in the
        working directory or above it, else the one in the user's data folder.
    config: Limits and isolation; by default from the environment.
    create: Whether to create a database that does not exist.

    Attributes: `vault`, `log` and `history` (stored data), `runner`, `executor` and `recorder` (running tools), `host`
    (functions that tools can call), `config`, `database`. The plug-ins of healkit add `requests`, `views`, `audit`,
    `traces`, `runs`, `mcp`, `healing`, `decisions`, `learning` and `panels`.

    Raises a `DatabaseError` if the database cannot be opened, and `ConfigError` for invalid settings.

    Example:
    >>> with Healkit("scores.db") as scores:
    ...     _ = scores.vault.add("double", "def double(n): return 2 * n")
    ...     scores.execute("double", arguments={"n": 21}).value
    42
    """

    def __init__(
        self, db: str | Path | None = None, *, config: Config | None = None, create: bool = True
    ) -> None:
        config = config or Config.from_environment()
        database = Database(
            resolve_url(db), wait_s=config.log_wait_s, synchronous=config.synchronous, create=create
        )
        if config.sanitize_log is None and database.path is None:
            # Other people can read a database on a server.
            config = dataclasses.replace(config, sanitize_log=True)
        self.config, self.database = config, database
        self.services = Services(database, config)
        self.recorder, self.executor = self.services.recorder, self.services.executor
        self.runner, self.history, self.host = self.services.runner, self.services.history, self.services.host
        #: Whether `close` was called; then nothing can be executed.
        self.closed = False
        open_healkits.add(self)

    @property
    def vault(self) -> Vault:
        """Tools and their revisions."""
        return self.services.vault

    @property
    def log(self) -> Log:
        """Log of all executions."""
        return self.services.log

    if TYPE_CHECKING:
        # Attributes that healkit's own parts add, with their types.
        traces: Traces
        runs: Runs
        runs_dir: Path
        audit: Audit
        views: Views
        view_keeper: ViewKeeper
        replays: Replays
        healing: HealService
        requests: Requests
        decisions: DecideService
        learning: LearningService
        graph: ToolGraph
        suggester: Suggester
        mcp: MCPServers
        panels: Any
        seed: Any
        browse: Any
        status: Callable[[], Status]
        doctor: Callable[[], DoctorReport]
        patch_editor: Any
        heal_panel: Any
        timeline: Any
        decide_panel: Any
        audit_panel: Any
        trends: Trends
        run = method_of("runs", Runs.run)
        replay_of = method_of("trends", Trends.replay_of)
        plot = method_of("trends", Trends.plot)
        trials = method_of("trials", Trials.run_all)
        map = method_of("maps", Maps.map)
        amap = method_of("maps", Maps.amap)
        replay = method_of("replays", Replays.replay)
        export_cassette = method_of("replays", Replays.export_cassette)
        heal = method_of("healing", HealService.heal)
        aheal = method_of("healing", HealService.aheal)
        heal_cell = method_of("healing", HealService.heal_cell)
        check_notebook = method_of("healing", HealService.check_notebook)
        decide = method_of("decisions", DecideService.decide)
        adecide = method_of("decisions", DecideService.adecide)
        suggest = method_of("suggester", Suggester.suggest)
        regress = method_of("learning", Regressions.regress)
        connect = method_of("mcp", MCPServers.connect)
        connect_all = method_of("mcp", MCPServers.connect_all)
        disconnect = method_of("mcp", MCPServers.disconnect)
        servers = method_of("mcp", MCPServers.servers)

        def summarize(self, value: Any, *, top: int = 10) -> ShownTextSummary | ShownFrameSummary:
            """Summarise a text, a frame or an array, without a model."""

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of this name that a part adds."""
        if name.startswith("_") or name == "services":
            raise AttributeError(f"Healkit has no attribute {name!r}.")
        if self.services.made(name) is None and name not in attribute_makers():
            raise AttributeError(f"Healkit has no attribute {name!r}.{did_you_mean(name, dir(self))}")
        return getattr(self.services, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *attribute_makers()})

    def trust(self) -> None:
        """Trust this database permanently: the grants stored in it apply, and its requests can be accepted.

        healkit trusts a database that it creates. Raises `DatabaseError` if your data folder is not writable.

        Example:
        >>> with Healkit("received.db") as received:
        ...     received.trust()
        ...     print(received.status().trust)
        trusted by you, ...
        """
        self.database.trust()

    @property
    def url(self) -> str:
        """URL of the database."""
        return self.database.url

    @property
    def path(self) -> Path | None:
        """File of the database; None if it is on a server."""
        return self.database.path

    # Running tools, in core/runtime/runner.py
    execute = method_of("runner", Runner.execute)
    aexecute = method_of("runner", Runner.aexecute)
    execute_tool = method_of("runner", Runner.execute_tool)
    aexecute_tool = method_of("runner", Runner.aexecute_tool)
    rerun = method_of("runner", Runner.rerun)
    try_code = method_of("runner", Runner.try_code)

    # Reading the log, in core/runtime/execution.py
    last_error = method_of("history", History.last_error)
    last_error_report = method_of("history", History.last_error_report)
    execution = method_of("history", History.execution)
    executions = method_of("history", History.executions)

    # Functions that tools can call on the host, in core/runtime/providers.py
    provide = method_of("host", HostFunctions.provide)
    withdraw = method_of("host", HostFunctions.withdraw)

    def undo(self, tool: str, persona: str = "default") -> VaultEntry:
        """Undo a tool's active revision: save a new revision with the code of its parent.

        A second call restores the undone code. Raises `RevisionNotFound` if there is nothing to undo, and the errors of
        `vault.revert`.

        Example:
        >>> _ = hk.vault.add("price", "def price(net): return net * 1.19")
        >>> _ = hk.vault.patch("price", "def price(net): return net * 1.9")
        >>> hk.undo("price")
        <VaultEntry price v3: 'def price(net): return net * 1.19'>
        """
        return self.vault.undo(tool, persona)

    def close(self) -> None:
        """Stop the MCP servers and close the database; safe to call twice.

        Example:
        >>> short = Healkit("short.db")
        >>> short.close()
        >>> short.closed
        True
        """
        if not self.closed:
            self.closed = True
            self.services.close()

    def __repr__(self) -> str:
        """Name the database, with its password masked; reads nothing from it."""
        return f"<Healkit on {self.database.where}{', closed' if self.closed else ''}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the state as a card; called by IPython's display formatter."""
        card = None if self.closed else hooks.first("shown", services=self.services)
        if card is None:
            return {"text/plain": repr(self)}
        from healkit.core.rendering.to_html import html_of
        from healkit.core.rendering.to_text import text_of

        return {"text/plain": text_of(card), "text/html": html_of(card)}

    def __enter__(self) -> Healkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: All open Healkits, to be closed at the interpreter's exit.
open_healkits: weakref.WeakSet[Healkit] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all databases and remove their temporary folders; called at the interpreter's exit."""
    for healkit in list(open_healkits):
        healkit.close()
    background.shutdown()

"""Hooks: the places where a plug-in can add something.

Each function of `Specs` is one hook.

A plug-in is a module with functions of these names, marked with `@hookimpl`. healkit's own parts are plug-ins too, each
in `healkit/parts/NAME/plugin.py`. Another package names its module under the entry point `healkit`. A function declares
the parameters that it needs, by name, and omits the others. docs/plugins.md builds one.

If a plug-in of another package raises, healkit logs a warning and goes on without it: no record and no card is lost. If
a plug-in cannot be imported, healkit logs a warning and leaves it out. A part of healkit's own is left out only if it
needs a part that was removed.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

import pluggy

from healkit.package import FOLDER

#: Entry point that names a package's plug-in, and name of the marker of its functions.
GROUP = "healkit"
hookimpl = pluggy.HookimplMarker(GROUP)
_spec = pluggy.HookspecMarker(GROUP)
_log = logging.getLogger(__name__)


class Specs(Protocol):
    """All hooks. services: A `services.Services`. failure: A `core.contracts.failure.Failure`."""

    # A Healkit.

    @_spec
    def attributes(self) -> Mapping[str, Callable[[Any], Any]]:
        """Return attributes of a `Healkit`: name → function that makes it from the services, on first use."""

    @_spec
    def opened(self, services: Any) -> None:
        """Start background work of a `Healkit`; called once its database is ready."""

    @_spec
    def closing(self, services: Any) -> None:
        """Stop what `opened` started, and close the attributes; called before the database is closed."""

    @_spec
    def closed(self, services: Any) -> None:
        """Stop what the last records needed; called after they are written, while the database is still open."""

    @_spec
    def problem(self, services: Any) -> str:
        """Return a sentence for the user about a problem; empty if there is none."""

    @_spec
    def status(self, services: Any) -> Mapping[str, Any]:
        """Return the fields of a `parts.doctor.records.Status` that the part knows."""

    @_spec(firstresult=True)
    def shown(self, services: Any) -> Any:
        """Return the card of a `Healkit`, a `core.rendering.document.Card`."""

    @_spec
    def record_folders(self, services: Any) -> Sequence[Any]:
        """Return folders of records, as paths. No tool may be granted one of them, or a folder that contains one."""

    @_spec
    def resting(self) -> None:
        """Stop what the process shares; called before healkit's event loop ends. The loop may start again."""

    @_spec
    def tables(self) -> None:
        """Import the plug-in's mapped tables; called before the first statement, which configures all tables."""

    @_spec
    def migrations(self) -> Mapping[str, Any]:
        """Return folders with Alembic migrations of the plug-in's own tables: a lower-case name → the folder's path.

        They run after healkit's migrations when a database is opened. The table `healkit_NAME_version` holds the number
        of the last one.
        """

    # The faces.

    @_spec
    def commands(self) -> Mapping[str, Callable[[], Any]]:
        """Return commands of the terminal: name → function that makes the row on first use.

        A row is a `commands.table.Command` or `Group`. A name of two words is a command in the group of the first word.
        """

    @_spec
    def mcp_tools(self) -> Mapping[str, Callable[[], Any]]:
        """Return tools of the MCP server: name → function that makes the row, a `commands.agents.AgentTool`."""

    @_spec
    def panels(self) -> Mapping[str, Callable[[], Any]]:
        """Return live panels: name → function that loads the panel's class, which takes a `Healkit` and its subject."""

    @_spec
    def pages(self, healkit: Any, recorded: Any) -> Sequence[Any]:
        """Return the requests that pages can send to this `Healkit`, as `faces.pages.operations.Operations`.

        recorded: A `faces.pages.page_data.PageData`, which prepares recorded data for a page.
        """

    # An execution.

    @_spec(firstresult=True)
    def steps(self, services: Any) -> Any:
        """Return a `core.runtime.events.Steps`, which gives each execution its sink and its retries."""

    @_spec(firstresult=True)
    def sanitizer(self, config: Any) -> Any:
        """Return a `core.secrets.cleaner.Cleaner`, which hides secrets and personal data as a `Config` says."""

    @_spec(firstresult=True)
    def contents(self, services: Any) -> Any:
        """Return a `core.runtime.contents.Contents`, which keeps the frames and arrays of executions."""

    @_spec(firstresult=True)
    def cleaner(self, services: Any) -> Any:
        """Return a `core.runtime.collecting.LogCleaner`, which cleans records and collects the steps of executions."""

    @_spec
    def recorded(self, services: Any, send: bool) -> None:
        """Handle the record of a finished execution; send: whether its trace is to be sent. Must not wait or raise."""

    @_spec(firstresult=True)
    def log_files(self, database: Any) -> Any:
        """Return a `core.store.log_reader.LogFiles`, which exports, imports and archives executions."""

    @_spec
    def deleting(self, session: Any, trace_ids: Sequence[str]) -> None:
        """Delete the plug-in's rows about these executions; called in the transaction that deletes the executions."""

    @_spec
    def pruned(self, database: Any) -> None:
        """Remove what only deleted rows needed; called after rows of a `core.store.database.Database` were deleted."""

    @_spec(firstresult=True)
    def audit_steps(self, manifest: Any) -> Any:
        """Return a function that states the facts of each event of a run for the audit; None if others may do it."""

    @_spec(firstresult=True)
    def story(self, run: Any) -> Any:
        """Return the story of a `parts.runs.contract.Run`, step by step: it makes the run's card and its data."""

    # A failure.

    @_spec
    def observers(self) -> Sequence[str]:
        """Return modules that a worker asks for facts about a failure; each defines `observe` and `suggestions`."""

    @_spec(firstresult=True)
    def retainer(self, retire: Callable[[Any], None]) -> Any:
        """Return a `core.workers.worker.Retainer`, which keeps the workers of failed runs. retire: Ends a worker."""

    @_spec(firstresult=True)
    def inspector(self) -> str:
        """Return the module whose function `answer_questions` answers questions in a failed run's worker."""

    @_spec(firstresult=True)
    def post_mortem(self, trace_id: str, label: str) -> Any:
        """Return an object that asks the worker of a failed run; None if no worker was kept."""

    @_spec(firstresult=True)
    def explain(self, failure: Any, where: str, code: str, defined: Any) -> Any:
        """Return a `core.contracts.explanation.Explanation` of a failure; None to leave it to other plug-ins.

        where: The place in words.
        code: The code that ran, if available.
        defined: Names that need no import there.
        """

    @_spec(firstresult=True)
    def writer(self, form: str) -> Any:
        """Return the function that writes a failed execution in one form, `markdown` or `notebook`."""

    @_spec
    def advisors(self) -> Mapping[str, Callable[[Any], Any]]:
        """Return advisors of healing: name → function that makes a `parts.heal.advisor.Advisor` from the `Config`."""


@functools.cache
def plugins() -> pluggy.PluginManager:
    """Return this process's plug-ins: healkit's own, then those of other installed packages."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Specs)
    for room in ("parts", "faces"):
        for plugin in sorted((FOLDER / room).glob("*/plugin.py")):
            name = f"healkit.{room}.{plugin.parent.name}.plugin"
            try:
                manager.register(importlib.import_module(name), name=name)
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith("healkit.parts."):
                    raise
                _log.warning("%s is left out: it needs %s, which is not installed.", name, error.name)
    for point in entry_points(group=GROUP):
        try:
            manager.register(point.load(), name=point.name)
        except Exception as error:  # noqa: BLE001 - another package's fault must not keep healkit from starting
            _log.warning("The plug-in %s is left out: %s: %s", point.name, type(error).__name__, error)
    return manager


def every(hook: str, **given: Any) -> list[Any]:
    """Call one hook of every plug-in, the last registered first; return the results that are not None."""
    return list(_results(hook, given))


def first(hook: str, **given: Any) -> Any:
    """Call one hook of each plug-in until one returns a result; return None if there is no result."""
    return next(_results(hook, given), None)


def rows_of(module: str, *names: str, table: str = "COMMANDS") -> dict[str, Callable[[], Any]]:
    """Return functions that make these rows of a module's table; the first call imports the module."""

    def row(name: str) -> Any:
        return getattr(importlib.import_module(module), table)[name]

    return {name: functools.partial(row, name) for name in names}


def made_row(what: str, name: str, maker: Callable[[], Any], *, own: bool) -> Any:
    """Return a row of a face; log a warning and return None if a row of another package cannot be loaded.

    own: The row is healkit's own. It is left out only if it needs a part that was removed.
    """
    try:
        return maker()
    except Exception as error:
        lacks_part = isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(
            "healkit.parts."
        )
        if own and not lacks_part:
            raise
        _log.warning("The %s %s is left out: %s: %s", what, name, type(error).__name__, error)
        return None


def _results(hook: str, given: Mapping[str, Any]) -> Iterator[Any]:
    for implementation in reversed(getattr(plugins().hook, hook).get_hookimpls()):
        try:
            result = implementation.function(*(given[name] for name in implementation.argnames))
        except Exception as error:
            if implementation.plugin_name.startswith("healkit."):
                raise
            name = implementation.plugin_name
            _log.warning("The plug-in %s failed in %s: %s: %s", name, hook, type(error).__name__, error)
            continue
        if result is not None:
            yield result

"""What a plug-in can hook into.

One function of `Specs` for each place.

A plug-in is a module with functions of these names, marked with `@hookimpl`. healkit's own parts are plug-ins, each by
its `healkit/parts/NAME/plugin.py`; another package names its module under the entry point `healkit`. A function takes
the parameters that it needs, by name, and leaves out the others. docs/plugins.md builds one.

A plug-in of another package that raises is passed over, with a warning in the log: it costs itself, never a record or a
card. One that cannot be imported is left out, with a warning in the log; a part
of healkit's own only where a part that it needs was taken away.
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

#: Entry point under which a package names its plug-in, and the mark of its functions.
GROUP = "healkit"
hookimpl = pluggy.HookimplMarker(GROUP)
_spec = pluggy.HookspecMarker(GROUP)
_log = logging.getLogger(__name__)


class Specs(Protocol):
    """Places to hook into. `services`: a `services.Services`. `failure`: a `core.contracts.failure.Failure`."""

    # What a Healkit has.

    @_spec
    def attributes(self) -> Mapping[str, Callable[[Any], Any]]:
        """Return attributes of a `Healkit`: name → what makes it of the services, when it is first asked for."""

    @_spec
    def opened(self, services: Any) -> None:
        """Begin what runs beside a `Healkit`; called once its database is ready."""

    @_spec
    def closing(self, services: Any) -> None:
        """End what `opened` has begun, and what an attribute holds open; called before the database is closed."""

    @_spec
    def closed(self, services: Any) -> None:
        """End what the last records were needed for; called when they are written, and the database is still open."""

    @_spec
    def problem(self, services: Any) -> str:
        """Return a sentence for the user on what is wrong; empty where nothing is."""

    @_spec
    def status(self, services: Any) -> Mapping[str, Any]:
        """Return fields of a `parts.doctor.records.Status` that the part knows."""

    @_spec(firstresult=True)
    def shown(self, services: Any) -> Any:
        """Return the card of a `Healkit`, a `core.rendering.document.Card`."""

    @_spec
    def record_folders(self, services: Any) -> Sequence[Any]:
        """Return folders of records, as paths: no tool may be granted one of them, or a folder around it."""

    @_spec
    def resting(self) -> None:
        """End what belongs to the process; called before healkit's event loop ends, and it may start again."""

    @_spec
    def tables(self) -> None:
        """Import the plug-in's mapped tables; called before the first statement, which configures all of them."""

    @_spec
    def migrations(self) -> Mapping[str, Any]:
        """Return folders with Alembic migrations of the plug-in's own tables: a lower-case name → the folder's path.

        They run when a database is opened, after healkit's. The table `healkit_NAME_version` has the last one's number.
        """

    # What a face has.

    @_spec
    def commands(self) -> Mapping[str, Callable[[], Any]]:
        """Return commands of the terminal: name → what makes its row when it is asked for.

        A row is a `commands.table.Command` or `Group`. A name of two words is a command of the group of the first.
        """

    @_spec
    def mcp_tools(self) -> Mapping[str, Callable[[], Any]]:
        """Return tools of the MCP server: name → what makes its row, a `commands.agents.AgentTool`."""

    @_spec
    def panels(self) -> Mapping[str, Callable[[], Any]]:
        """Return live panels: name → what loads the panel's class, which is called with a `Healkit` and its subject."""

    @_spec
    def pages(self, healkit: Any, recorded: Any) -> Sequence[Any]:
        """Return questions that pages may ask of this `Healkit`, as `faces.pages.operations.Operations`.

        recorded: a `faces.pages.page_data.PageData`, which makes recorded data fit for a page.
        """

    # An execution.

    @_spec(firstresult=True)
    def steps(self, services: Any) -> Any:
        """Return what gives each execution its sink and its retries, a `core.runtime.events.Steps`."""

    @_spec(firstresult=True)
    def sanitizer(self, config: Any) -> Any:
        """Return what hides secrets and personal data as a `Config` says, a `core.secrets.cleaner.Cleaner`."""

    @_spec(firstresult=True)
    def contents(self, services: Any) -> Any:
        """Return what keeps the frames and arrays of executions, a `core.runtime.contents.Contents`."""

    @_spec(firstresult=True)
    def cleaner(self, services: Any) -> Any:
        """Return what cleans records and collects the steps of executions, a `core.runtime.collecting.LogCleaner`."""

    @_spec
    def recorded(self, services: Any, send: bool) -> None:
        """Take note that one more end is on record; send: its trace is to be sent. Must not wait or raise."""

    @_spec(firstresult=True)
    def log_files(self, database: Any) -> Any:
        """Return what exports, imports and archives executions, a `core.store.log_reader.LogFiles`."""

    @_spec
    def deleting(self, session: Any, trace_ids: Sequence[str]) -> None:
        """Delete what the plug-in's tables hold of these executions; called in the transaction that deletes them."""

    @_spec
    def pruned(self, database: Any) -> None:
        """Remove what only deleted rows needed; called after rows of a `core.store.database.Database` were deleted."""

    @_spec(firstresult=True)
    def audit_steps(self, manifest: Any) -> Any:
        """Return what tells the facts of each event of a run for the audit; None for one that others may audit."""

    @_spec(firstresult=True)
    def story(self, run: Any) -> Any:
        """Tell a `parts.runs.contract.Run` step by step: what makes its card, and its data."""

    # A failure.

    @_spec
    def observers(self) -> Sequence[str]:
        """Return modules that a worker asks for facts about a failure: each has `observe` and `suggestions`."""

    @_spec(firstresult=True)
    def retainer(self, retire: Callable[[Any], None]) -> Any:
        """Return what keeps the workers of failed runs, a `core.workers.worker.Retainer`. retire: ends a worker."""

    @_spec(firstresult=True)
    def inspector(self) -> str:
        """Return the module that answers questions in a failed run's worker, by its function `answer_questions`."""

    @_spec(firstresult=True)
    def post_mortem(self, trace_id: str, label: str) -> Any:
        """Return what asks the worker of a failed run; None where none was kept."""

    @_spec(firstresult=True)
    def explain(self, failure: Any, where: str, code: str, defined: Any) -> Any:
        """Explain a failure: a `core.contracts.explanation.Explanation`, or None for one that others may explain.

        where: the place in words. code: what ran, if it is at hand. defined: names that need no import there.
        """

    @_spec(firstresult=True)
    def writer(self, form: str) -> Any:
        """Return the function that writes a failed execution in that form, `markdown` or `notebook`."""

    @_spec
    def advisors(self) -> Mapping[str, Callable[[Any], Any]]:
        """Return advisors of healing: name → what makes a `parts.heal.advisor.Advisor` of the `Config`."""


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
    """Call that function of every plug-in, the last registered first; return what is not None."""
    return list(_results(hook, given))


def first(hook: str, **given: Any) -> Any:
    """Call that function of one plug-in after the other, until one returns something; None where none does."""
    return next(_results(hook, given), None)


def rows_of(module: str, *names: str, table: str = "COMMANDS") -> dict[str, Callable[[], Any]]:
    """Return what makes those rows of a module's table; it is imported when the first is asked for."""

    def row(name: str) -> Any:
        return getattr(importlib.import_module(module), table)[name]

    return {name: functools.partial(row, name) for name in names}


def made_row(what: str, name: str, maker: Callable[[], Any], *, own: bool) -> Any:
    """Return a row of a face; None, with a warning in the log, for one of another package that cannot be loaded.

    own: it is healkit's own, which is left out only where a part that it needs was taken away.
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

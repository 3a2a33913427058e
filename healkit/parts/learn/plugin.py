"""What learning hooks into.

Each ending on record, the memory of fixes as an advisor, and what it adds to a `Healkit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.hooks import hookimpl, rows_of
from healkit.parts.learn.thread import ConsumerThread

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sqlalchemy.orm import Session

    from healkit.config import Config
    from healkit.parts.heal.advisor import Advisor
    from healkit.parts.learn.regress import RegressReport
    from healkit.parts.learn.service import LearningService
    from healkit.parts.learn.suggest import Suggester
    from healkit.parts.learn.tool_graph import ToolGraph
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit graph`, `suggest` and `learn`."""
    return rows_of("healkit.parts.learn.commands", "graph", "suggest", "learn")


@hookimpl
def mcp_tools() -> Mapping[str, Callable[[], Any]]:
    """`suggest_tools`."""
    return rows_of("healkit.parts.learn.agent_tools", "suggest_tools", table="TOOLS")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`learning`, `graph`, `suggest(…)` and `regress(…)`."""
    return {
        "learning": _learning,
        "learning_thread": lambda services: ConsumerThread(lambda: services.learning.consumer),
        "graph": _graph,
        "suggester": _suggester,
        "suggest": lambda services: services.suggester.suggest,
        "regress": lambda services: Regressions(services).regress,
    }


@hookimpl
def advisors() -> Mapping[str, Callable[[Config], Advisor]]:
    """`memory`: past fixes, tried on a new failure."""
    return {"memory": _memory}


@hookimpl
def recorded(services: Services) -> None:
    """Learn from it, when nothing else happens."""
    services.learning_thread.notify()


@hookimpl
def problem(services: Services) -> str:
    """Return the problem that keeps healkit from learning."""
    thread: ConsumerThread = services.learning_thread
    return thread.problem


@hookimpl
def closing(services: Services) -> None:
    """End the thread."""
    services.learning_thread.close()


@hookimpl
def tables() -> None:
    """Import the tables for the learned data."""
    from healkit.parts.learn import tables as _tables  # noqa: F401 - to have them


@hookimpl
def deleting(session: Session, trace_ids: Sequence[str]) -> None:
    """Delete the data learned from them."""
    from healkit.parts.learn.priority import forget

    forget(session, trace_ids)


def _memory(_config: Config) -> Advisor:
    from healkit.parts.learn.memory_advisor import MemoryAdvisor

    return MemoryAdvisor()


def _learning(services: Services) -> LearningService:
    from healkit.parts.learn.service import LearningService

    return LearningService(services.database, services.learning_thread)


def _graph(services: Services) -> ToolGraph:
    from healkit.parts.learn.tool_graph import ToolGraph

    return ToolGraph(services.database, services.learning.soon)


def _suggester(services: Services) -> Suggester:
    from healkit.parts.learn.suggest import Suggester

    learning: LearningService = services.learning
    return Suggester(
        services.database,
        services.vault,
        learning.graph_learner,
        learning.soon,
        services.traces.tracer.intents,
    )


class Regressions:
    """Runs the recorded runs of one database's tools again."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def regress(
        self,
        tool: str,
        code: str | None = None,
        persona: str = "default",
        *,
        budget_s: float = 30.0,
        files: Sequence[str | Path] = (),
        executor: Executor | None = None,
    ) -> RegressReport:
        """Run a tool's recorded runs again with other code, most telling first, until the budget is spent.

        code: By default the active code. Calls are answered from the record; no call is made. The report says which
            runs differ from the record, and after how many re-runs that was seen.
        budget_s: Seconds of wall time.
        files: Granted files that other code may read, as in `heal`; a run that needs another file is undecided.
        executor: Any `concurrent.futures.Executor`. Its workers then run a tool that calls nothing and reads no file.

        Raises `ConfigError` for an invalid budget, as `vault.lookup` does, and as `try_code` does for the code.

        Example:
        >>> _ = hk.vault.add("floor", "def floor(n): return int(n)")
        >>> for n in (1.5, -1.5):
        ...     _ = hk.execute("floor", arguments={"n": n})
        >>> print(hk.regress("floor", "def floor(n): return int(n // 1)"))
        ✗ floor v1: 1 recorded run of 2 differs
        ...
        """
        from healkit.parts.learn.regress import Regression
        from healkit.parts.trials.places import Places
        from healkit.parts.trials.trials import Trials

        services = self._services
        entry = services.vault.lookup(tool, persona)
        named = tuple(map(str, files))
        with Places.opened(Trials(services.recorder, services.config), executor=executor) as places:
            return Regression(
                services.runner, services.log, entry, services.executor.providers, persona, named, places
            ).report(code, budget_s)

"""`hk.learning`: what the traces teach."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from healkit.core.store.database import Database
from healkit.core.store.models import COLLECTED, TRACES
from healkit.parts.learn import priority
from healkit.parts.learn.answers import Answers
from healkit.parts.learn.consumer import Consumer
from healkit.parts.learn.facts import Learner
from healkit.parts.learn.graph import GraphLearner
from healkit.parts.learn.priority import PriorityLearner, Sample, Surprise
from healkit.parts.learn.tables import LEARNED
from healkit.parts.learn.thread import ConsumerThread
from healkit.parts.traces.contract import ExecutionTrace, read_trace

if TYPE_CHECKING:
    from healkit.parts.learn.memory import FixMemory
    from healkit.parts.learn.success import SuccessReport


def consumer_of(database: Database, graph: GraphLearner | None = None) -> Consumer:
    """Make the consumer of a database, with everything that learns from its traces.

    graph: The learner of `hk.suggest`.
    """
    learners: Sequence[Learner] = [PriorityLearner(), graph or GraphLearner()]
    return Consumer(database, learners, graph.lock if graph else None)


class LearningService:
    """Knowledge from one database's traces.

    A question is answered from the learned data. If a few traces are waiting, it first lets a thread learn from them,
    and waits for at most `_SOON_S`. If many are waiting, the thread continues in the background. `waiting` says how
    many there are. All methods raise `DatabaseError`s.

    thread: By default one of its own.

    Example:
    >>> _ = hk.learning.catch_up()
    >>> hk.learning.count() >= 1
    True
    """

    #: How long a question waits for the newest traces, in seconds, and for how many at most.
    _SOON_S, _SOON_MAX = 0.1, 100

    def __init__(self, database: Database, thread: ConsumerThread | None = None) -> None:
        self._database = database
        self._thread = thread or ConsumerThread(lambda: self.consumer)

    @functools.cached_property
    def graph_learner(self) -> GraphLearner:
        """Learner of the tool graph, with the counts for suggestions."""
        return GraphLearner()

    @functools.cached_property
    def consumer(self) -> Consumer:
        """Consumer of the traces, which has learned nothing yet."""
        return consumer_of(self._database, self.graph_learner)

    @functools.cached_property
    def memory(self) -> FixMemory:
        """Memory of fixes: `.show()`, `.reset()`, `.export(path)`, `.import_(path)`."""
        from healkit.parts.learn.memory import FixMemory

        return FixMemory(self._database)

    def report(self) -> SuccessReport:
        """Measure for each tool whether its failures can be predicted; the prediction is off if it is not better.

        A tool needs 30 runs. `to_pandas()` has one row for each tool.

        Example:
        >>> hk.learning.report()
        No tool has enough runs yet
          A tool needs 30 runs.
        """
        from healkit.parts.learn import success

        return success.success_report(self._database)

    def catch_up(self) -> int:
        """Learn from all waiting traces, wait for that, and return their number.

        Example:
        >>> _ = hk.execute("mean", arguments={"values": [1, 2]})
        >>> _ = hk.learning.catch_up()
        >>> hk.learning.waiting()
        0
        """
        return self.consumer.catch_up(large=True)

    def waiting(self) -> int:
        """Count the traces that are not learned yet; approximate for thousands.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> hk.learning.waiting()
        0
        """
        return self.consumer.waiting()

    def soon(self) -> int:
        """Learn from the newest traces if that is quick, otherwise in the background; return how many are waiting.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> hk.learning.soon()
        0
        """
        waiting = self.consumer.waiting()
        if not waiting or self._database.read_only:
            return waiting
        self._thread.hurry(self._SOON_S if waiting <= self._SOON_MAX else 0.0)
        return self.consumer.waiting()

    def rebuild(self) -> int:
        """Forget everything learned from traces, learn it again from the log, and return the number of traces.

        The same log gives the same numbers; executions that were deleted from it no longer count.

        Example:
        >>> hk.learning.rebuild() >= 1
        True
        """
        return self.consumer.rebuild()

    def count(self) -> int:
        """Count the executions that were learned from.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> before = hk.learning.count()
        >>> _ = hk.execute("mean", arguments={"values": [1, 2]})
        >>> _ = hk.learning.catch_up()
        >>> hk.learning.count() - before
        1
        """
        self.soon()
        with self._database.read() as session:
            return int(session.scalar(select(func.count()).where(LEARNED.c.task_id == "")) or 0)

    def steps(self, trace_id: str) -> Answers[Surprise]:
        """Return how surprising an execution was, then each call in it; nothing if nothing was learned from it.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> for step in hk.learning.steps(failed.trace_id):
        ...     print(step)
        ratio failed, expected to succeed at 50%: priority 0.50
        """
        waiting = self.soon()
        return Answers(priority.steps(self._database, trace_id), waiting)

    def surprising(self, count: int = 10, tool: str | None = None) -> Answers[Surprise]:
        """Return the executions that differed most from the expected outcome; of equal ones the newest first.

        count: The maximum number of executions.
        tool: Only executions of that tool.

        Example:
        >>> _ = hk.vault.add("parse", "def parse(text): return int(text)")
        >>> for text in ("1", "2", "3", "x"):
        ...     _ = hk.execute("parse", arguments={"text": text})
        >>> _ = hk.learning.catch_up()
        >>> print(hk.learning.surprising(1, tool="parse")[0])
        parse failed, expected to succeed at 80%: priority 0.80
        """
        waiting = self.soon()
        return Answers(priority.surprising(self._database, count, tool), waiting)

    def sample(
        self,
        count: int,
        *,
        alpha: float = 0.6,
        beta: float = 0.4,
        seed: int | None = None,
        tool: str | None = None,
    ) -> Sample:
        """Draw `count` executions, the likelier the more surprising they were, with replacement; P ∝ priority^alpha.

        beta: How far the weights correct for that; raise it to 1 towards the end of the work.
        seed: The same seed and the same log give the same sample.
        tool: Only executions of that tool.

        `to_pandas()` has one row for each draw. Raises `UsageInvalid` for invalid numbers.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> drawn = hk.learning.sample(3, seed=7, tool="ratio")
        >>> [one.tool_name for one in drawn]
        ['ratio', 'ratio', 'ratio']
        """
        waiting = self.soon()
        drawn = priority.sample(self._database, count, alpha=alpha, beta=beta, seed=seed, tool=tool)
        drawn.waiting = waiting
        return drawn

    def sample_by_priority(
        self, count: int, *, alpha: float = 0.6, seed: int | None = None
    ) -> list[ExecutionTrace]:
        """Return the traces of such a sample, each once: `sampleByPriority()` of other collectors.

        Example:
        >>> _ = hk.learning.catch_up()
        >>> traces = hk.learning.sample_by_priority(5, seed=7)
        >>> 1 <= len(traces) <= 5
        True
        """
        ids = list(dict.fromkeys(row.trace_id for row in self.sample(count, alpha=alpha, seed=seed)))
        with self._database.read() as session:
            wires = {
                row.trace_id: row.wire
                for table in (TRACES, COLLECTED)
                for row in session.execute(
                    select(table.c.trace_id, table.c.wire).where(table.c.trace_id.in_(ids))
                )
            }
        return [read_trace(wires[trace_id]) for trace_id in ids if trace_id in wires]

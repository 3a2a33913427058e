"""Failures over time: how often, since when, until when."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.execution import (
    TRIED_ORIGINS,
    GroupInfo,
    Ran,
)
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.rendering import cleaning
from healkit.core.runtime import contents
from healkit.core.runtime.execution import Execution, execution_of
from healkit.errors import is_refused
from healkit.parts.trends.plots import Plot, plot_days, plot_runs

if TYPE_CHECKING:
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionLog


#: Above so many runs, draw days instead of runs.
_EACH_RUN_MAX = 2000
#: Kinds of failures of one tool that are looked at.
_GROUPS_MAX = 200


@dataclasses.dataclass(frozen=True)
class Recurrence:
    """A failure that happened before: how often, since when, and the latest revision that met it and passed."""

    count: int
    first_seen: datetime
    cured_by: int | None


class Trends:
    """Statistics of the log about failures over time; `hk.trends`.

    complete: Returns a row of the log as an execution, with its calls and code.

    Example:
    >>> hk.trends.replay_of(failed) is None
    True
    """

    def __init__(self, log: Log, complete: Callable[[ExecutionLog], Execution]) -> None:
        self._log, self._complete = log, complete

    def shown_groups(self, groups: Sequence[GroupInfo]) -> list[GroupInfo]:
        """Return groups of failures without secrets: the arguments of the newest row show what a message contains.

        Example:
        >>> groups = hk.trends.shown_groups(hk.log.groups(tool="ratio"))
        >>> [group.evalue for group in groups]
        ['division by zero']
        """
        cleaned = []
        for group in groups:
            row = self._log.get(group.last_log_id)
            record = cleaning.sanitizer().of_record()
            if row is not None:
                cleaning.execution(execution_of(row, []), record, in_list=True)
            cleaned.append(dataclasses.replace(group, evalue=record.text(group.evalue).value))
        return cleaned

    def replay_of(self, failed: Execution) -> Execution | None:
        """Return a later revision's successful execution with the same arguments; None while there is none.

        Example:
        >>> _ = hk.vault.add("second", "def second(items): return items[2]")
        >>> wrong = hk.execute("second", arguments={"items": [1, 2]})
        >>> _ = hk.vault.patch("second", "def second(items): return items[1]")
        >>> _ = hk.rerun(wrong.log_id)
        >>> hk.replay_of(wrong).label
        'second v2'
        """
        row = _passing_replay(self._log, failed)
        return None if row is None else self._complete(row)

    def plot(
        self,
        tool: str | None = None,
        *,
        since: datetime | date | str | None = None,
        persona: str | None = None,
    ) -> Plot:
        """Plot failure rate and duration over time: each run of one tool, otherwise a point for each day.

        since: A time, a date, or one of both as text in ISO 8601. Only later runs count.

        A notebook shows the plot. `figure` is matplotlib's, and `save(path)` writes a file. Raises `PlotUnavailable`
        without the extra `healkit[plot]`.

        Example:
        >>> hk.plot("ratio").save("ratio.png").name
        'ratio.png'
        """
        log, where = self._log, {"tool": tool, "persona": persona, "since": since}
        if tool is not None:
            page = log.query(**where, limit=_EACH_RUN_MAX)
            if len(page.rows) < _EACH_RUN_MAX:
                runs = [
                    Ran(row.timestamp, row.status == "FAILURE", row.revision, row.duration_ms)
                    for row in reversed(page.rows)
                    if row.status != "RUNNING"
                    and row.origin not in TRIED_ORIGINS
                    and not is_refused(row.error_code)
                ]
                return plot_runs(runs, log.summary(**where, by=["revision"]).rows)
        return plot_days(log.summary(**where, by=["revision", "day"]).rows)

    def recurrence(self, failed: Execution) -> Recurrence | None:
        """Say how often a failure like this one is on record, as a `Recurrence`; None if it is the first.

        Example:
        >>> _ = hk.vault.add("invert", "def invert(n): return 1 / n")
        >>> for _ in range(3):
        ...     wrong = hk.execute("invert", arguments={"n": 0})
        >>> hk.trends.recurrence(wrong).count
        3
        """
        failure = failed.uncleaned.failure
        assert failure is not None
        log, tool, persona = self._log, failed.tool_name, failed.persona
        mark = fingerprint(failure)
        of = {"status": "FAILURE", "tool": tool, "persona": persona, "fingerprint": mark}
        group = next(iter(log.groups(**of, limit=1)), None)
        if group is None or group.count < 2:
            return None
        since = group.first_revision or 0
        cured = [n for n in log.passing_revisions(tool, persona, mark) if since < n != failed.revision]
        return Recurrence(group.count, group.first_seen, max(cured, default=None))

    def first_failures(self, tool: str) -> dict[int, datetime]:
        """Return when each revision of a tool first failed, without those that never did.

        Example:
        >>> list(hk.trends.first_failures("ratio"))
        [1]
        """
        first: dict[int, datetime] = {}
        for group in self._log.groups(tool=tool, limit=_GROUPS_MAX):
            if (number := group.first_revision) is not None:
                first[number] = min(group.first_seen, first.get(number, group.first_seen))
        return first


#: How many later successes are looked through for one of the same arguments.
_REPLAYS_MAX = 200


def _passing_replay(log: Log, failed: Execution) -> Any:
    """Return the newest success of a later revision with exactly the same arguments; None if there is none."""
    row = None if failed.log_id is None else log.get(failed.log_id)
    arguments = failed.uncleaned.arguments if row is None else row.arguments
    for row in log.query(
        status="SUCCESS", tool=failed.tool_name, persona=failed.persona, tried=False, limit=_REPLAYS_MAX
    ):
        later = row.revision is not None and row.revision > (failed.revision or 0)
        if later and row.arguments == arguments and contents.same_data(row.trace_id, failed.trace_id):
            return row
    return None

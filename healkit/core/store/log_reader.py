"""Queries of the log, its exports and its pruning.

Every query uses an index, or the counts that triggers keep beside the log. So it costs as much at a million rows as at
ten thousand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqlalchemy import Select, func, select

from healkit import hooks
from healkit.core.contracts.execution import (
    GROUP_FILTERS,
    SUMMARY_FILTERS,
    TRIED_ORIGINS,
    Filters,
    status_of,
    takes_filters,
)
from healkit.core.store import vault_names
from healkit.core.store.database import Database
from healkit.core.store.log_pages import Page, count_refused, newest_first, own_only, read_page, status_is
from healkit.core.store.models import (
    CALLS,
    DAYS,
    DECISIONS,
    GROUPS,
    LOG,
    ExecutionCall,
    ExecutionDecision,
    ExecutionLog,
)
from healkit.core.store.retention import PruneReport, Retention
from healkit.core.store.stats import Groups, Summary, read_groups, read_passing_revisions, read_summary
from healkit.errors import ConfigError, LogFileError, check_text

if TYPE_CHECKING:
    import pandas as pd


#: Format of an archive.
ArchiveFormat = Literal["jsonl", "parquet"]


class Imported(NamedTuple):
    """Number of executions in a file, and number of those that were new here."""

    read: int
    added: int


class LogFiles:
    """Files of executions; a part reads and writes them (`hooks.Specs.log_files`)."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def export(self, path: Path, filters: Filters, *, overwrite: bool) -> int:
        """Write the finished executions that match the filters, oldest first; return their number."""
        raise _WITHOUT_FILES

    def bring_in(self, path: Path) -> Imported:
        """Import the executions of a file that are missing here, by trace id."""
        raise _WITHOUT_FILES

    def archive(
        self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str
    ) -> PruneReport:
        """Move executions that are older, or beyond the newest `keep`, to a file in that folder."""
        raise _WITHOUT_FILES


_WITHOUT_FILES = LogFileError("The part that reads and writes files of executions is not installed.")


class Log:
    """Recorded executions; `hk.log`.

    refresh: Called before each query, to store the records that wait in the spool.
    retention_days, retention_rows: Defaults of `prune`; 0 sets no limit.

    Example:
    >>> hk.log.get(failed.log_id).status
    'FAILURE'
    """

    def __init__(
        self,
        database: Database,
        refresh: Callable[[], object] | None = None,
        *,
        retention_days: float = 0,
        retention_rows: int = 0,
    ) -> None:
        self._database = database
        self._refresh = refresh
        self._retention = (retention_days, retention_rows)

    @takes_filters()
    def query(
        self, *, filters: Filters, limit: int = 50, before_id: int | None = None, after_id: int | None = None
    ) -> Page:
        """Return one page of rows, newest first, as a `Page`; its `to_pandas()` is a DataFrame with one row each.

        Pass the filters by name (see `contracts.execution.Filters`), or together as `filters`. Without trials and
        searches (`tried=False`), the page's `left_out` counts the omitted ones.

        limit: The maximum number of rows.
        before_id, after_id: `next_before_id` or `next_after_id` of another page with the same filters.

        Raises `UsageInvalid` for an invalid filter.

        Example:
        >>> page = hk.log.query(tool="ratio", status="failure", limit=1)
        >>> [(row.tool_name, row.ename) for row in page.rows]
        [('ratio', 'ZeroDivisionError')]
        """
        with self._reading() as session:
            return read_page(session, filters, limit, before_id, after_id)

    def get(self, log_id: int) -> ExecutionLog | None:
        """Return the row with that id, or None; also accepts integers of numpy, such as those of a frame of rows.

        Example:
        >>> row = hk.log.get(failed.log_id)
        >>> row.tool_name, row.status, row.ename
        ('ratio', 'FAILURE', 'ZeroDivisionError')
        """
        number = operator.index(log_id) if hasattr(log_id, "__index__") else log_id
        return self._first(select(ExecutionLog).where(LOG.c.id == number))

    def by_trace(self, trace_id: str) -> ExecutionLog | None:
        """Return the row of that execution, or None; `trace_id` is that of `Execution.trace_id`.

        Example:
        >>> hk.log.by_trace(failed.trace_id).ename
        'ZeroDivisionError'
        """
        return self._first(select(ExecutionLog).where(LOG.c.trace_id == trace_id))

    def calls(self, trace_id: str) -> list[ExecutionCall]:
        """Return the calls of that execution through the bridge, in the order in which the host received them.

        Example:
        >>> _ = hk.provide(lambda n: abs(n), "size")
        >>> code = "def distance(a, b): return mcp.host.size(n=a - b)"
        >>> _ = hk.vault.add("distance", code, grants={"calls": ["host.size"]})
        >>> done = hk.execute("distance", arguments={"a": 2, "b": 5})
        >>> [(call.server, call.tool, call.success) for call in hk.log.calls(done.trace_id)]
        [('host', 'size', True)]
        """
        statement = select(ExecutionCall).where(CALLS.c.trace_id == trace_id)
        with self._reading() as session:
            calls = list(session.scalars(statement))
        # t10 comes after t9, unlike in a database's text order.
        return sorted(calls, key=lambda call: (len(call.task_id), call.task_id))

    def decisions(self, trace_id: str) -> list[ExecutionDecision]:
        """Return the branches that the execution reported with `trace.decision`, in order.

        Example:
        >>> code = "def passed(points): return trace.decision('passed', points >= 50)"
        >>> _ = hk.vault.add("passed", code)
        >>> done = hk.execute("passed", arguments={"points": 70})
        >>> [(branch.node, branch.outcome) for branch in hk.log.decisions(done.trace_id)]
        [('passed', 'True')]
        """
        statement = select(ExecutionDecision).where(DECISIONS.c.trace_id == trace_id)
        with self._reading() as session:
            return list(session.scalars(statement.order_by(DECISIONS.c.number)))

    def last_error(self, tool: str | None = None, persona: str | None = None) -> ExecutionLog | None:
        """Return the newest failure, optionally of one tool and persona; None if there is none.

        If a tool has none under its name, failures under its former names count. Trials and searches do not count, here
        and in all statistics of a tool.

        Example:
        >>> hk.log.last_error("ratio").ename
        'ZeroDivisionError'
        """
        with self._reading() as session:
            names = [None] if tool is None else vault_names.all_of(session, tool)
            for name in names:
                if page := read_page(
                    session, Filters("FAILURE", name, persona, tried=False), 1, count=False
                ).rows:
                    return page[0]
        return None

    def tools_with_errors(self, persona: str | None = None) -> list[str]:
        """Return the sorted names of tools that ever failed; persona: only for that one.

        Example:
        >>> "ratio" in hk.log.tools_with_errors()
        True
        """
        if persona is not None:
            failed_for = select(GROUPS.c.tool_name).where(GROUPS.c.persona == persona).distinct()
            with self._reading() as session:
                return sorted(session.scalars(failed_for))
        # One index lookup for each name; DISTINCT would read all failures.
        names: list[str] = []
        failed = [status_is("FAILURE"), *own_only()]
        with self._reading() as session:
            while True:
                after = [LOG.c.tool_name > names[-1]] if names else []
                name = session.scalar(select(func.min(LOG.c.tool_name)).where(*failed, *after))
                if name is None:
                    return names
                names.append(name)

    def running(self) -> list[ExecutionLog]:
        """Return the rows that have not ended, newest first: in progress, or orphans of a dead host.

        Example:
        >>> hk.log.running()
        []
        """
        with self._reading() as session:
            return list(session.scalars(newest_first([status_is("RUNNING")])))

    def count(self, *, status: str | None = None, tool: str | None = None, tried: bool = True) -> int:
        """Count the rows, optionally of one status or tool; tried: including trials and searches.

        `REFUSED` counts those failures that were refused before any code ran.

        Example:
        >>> _ = hk.vault.add("half", "def half(n): return n / 2")
        >>> for n in (1, 2, "three"):
        ...     _ = hk.execute("half", arguments={"n": n})
        >>> hk.log.count(tool="half"), hk.log.count(tool="half", status="FAILURE")
        (3, 1)
        """
        if status is not None:
            check_text("status", status)
        wanted = None if status is None else status_is(status)  # raises for an unknown status
        running = select(LOG.c.tool_name, LOG.c.origin).where(status_is("RUNNING"))
        days = select(func.sum(DAYS.c.runs), func.sum(DAYS.c.failures), func.sum(DAYS.c.refused))
        if tool is not None:
            days = days.where(DAYS.c.tool_name == tool)
        if not tried:
            days = days.where(DAYS.c.revision >= 0)
        with self._reading() as session:
            runs, failures, refused = (int(number or 0) for number in session.execute(days).one())
            failures += refused
            counts = {"SUCCESS": runs - failures, "FAILURE": failures}
            # There are few; with a condition on the tool, SQLite would read all of the tool's rows.
            counts["RUNNING"] = sum(
                tool in {None, row.tool_name} and (tried or row.origin not in TRIED_ORIGINS)
                for row in session.execute(running)
            )
        return (
            sum(counts.values()) if wanted is None else {**counts, "REFUSED": refused}[status_of(str(status))]
        )

    @takes_filters()
    def count_refused(self, *, filters: Filters) -> int:
        """Count the filtered calls that were refused before any code ran, up to `TRIED_COUNTED_MAX`.

        The filters are those of `query`.

        Example:
        >>> _ = hk.vault.add("third", "def third(n: int): return n / 3")
        >>> hk.execute("third", arguments={"n": "nine"})
        Traceback (most recent call last):
            ...
        healkit.errors.ArgumentsInvalid: ...
        >>> hk.log.count_refused(tool="third")
        1
        """
        with self._reading() as session:
            return count_refused(session, filters)

    @takes_filters(*GROUP_FILTERS)
    def groups(self, *, filters: Filters, limit: int = 50) -> Groups:
        """Group failures by fingerprint, the latest first: how often, since when, and whether they are cured.

        since, until: Bounds of a group's latest failure.

        The groups contain failures of code. `left_out` counts the calls that were refused before any code ran; the
        statuses `REFUSED` and `FAILURE` include them.

        Example:
        >>> _ = hk.vault.add("initial", "def initial(name): return name[0]")
        >>> for name in ("", "Ada", ""):
        ...     _ = hk.execute("initial", arguments={"name": name})
        >>> [(group.ename, group.count) for group in hk.log.groups(tool="initial")]
        [('IndexError', 2)]
        """
        with self._reading() as session:
            return read_groups(session, filters, limit)

    def passing_revisions(self, tool: str, persona: str, fingerprint: str) -> list[int]:
        """Return the revisions, in order, that passed with recorded arguments of that failure.

        Example:
        >>> _ = hk.vault.add("last", "def last(items): return items[len(items)]")
        >>> wrong = hk.execute("last", arguments={"items": [1, 2]})
        >>> _ = hk.vault.patch("last", "def last(items): return items[-1]")
        >>> _ = hk.rerun(wrong.log_id)
        >>> (group,) = hk.log.groups(tool="last")
        >>> hk.log.passing_revisions("last", "default", group.fingerprint)
        [2]
        """
        with self._reading() as session:
            return read_passing_revisions(session, tool, persona, fingerprint)

    @takes_filters(*SUMMARY_FILTERS)
    def summary(self, *, filters: Filters, by: Sequence[str] = ()) -> Summary:
        """Sum up finished runs, failures, refused calls and durations of each tool, from daily counts.

        since, until: Days in UTC, the latter exclusive.
        by: A row for each `persona`, `revision` or `day` too.

        Example:
        >>> _ = hk.vault.add("cube", "def cube(n: int): return n ** 3")
        >>> _ = hk.execute("cube", arguments={"n": 2})
        >>> [(row.tool_name, row.runs, row.failures) for row in hk.log.summary(tool="cube")]
        [('cube', 1, 0)]
        """
        with self._reading() as session:
            return read_summary(session, filters, by)

    @takes_filters(*SUMMARY_FILTERS)
    def metrics(self, *, filters: Filters, by: Sequence[str] = ("revision",)) -> pd.DataFrame:
        """Return the numbers of runs, failures and refused calls, and durations in ms, as a DataFrame.

        It has a row for each tool and revision, or for each tool and `by`. The arguments are those of `summary`.
        `p50_ms` and `p95_ms` are the longest durations of that share of the runs, as `summary` counts them.

        Example:
        >>> _ = hk.vault.add("root", "def root(n: float): return n ** 0.5")
        >>> _ = hk.execute("root", arguments={"n": 9})
        >>> hk.log.metrics(tool="root")[["tool_name", "revision", "runs", "failures"]]
          tool_name  revision  runs  failures
        0      root         1     1         0
        """
        frame = self.summary(filters=filters, by=by).to_pandas()
        keys = ["tool_name", *(name for name in by if name != "tool_name")]
        if "revision" in keys:
            frame["revision"] = frame["revision"].astype("Int64")  # trials and searches have none
        return frame[[*keys, "runs", "failures", "refused", "failure_rate", "mean_ms", "p50_ms", "p95_ms"]]

    def prometheus(self) -> str:
        """Return the numbers and durations of finished executions, by tool and persona, in Prometheus' text format.

        Example:
        >>> print(hk.log.prometheus())
        # HELP healkit_executions_total Finished executions.
        # TYPE healkit_executions_total counter
        ...
        healkit_executions_total{persona="default",status="FAILURE",tool="ratio"} ...
        """
        from healkit.core.store.stats import metrics_text  # late, because only a scraper needs it

        with self._reading() as session:
            return metrics_text(session)

    @takes_filters()
    def export(self, path: str | Path, *, filters: Filters, overwrite: bool = False) -> int:
        """Write finished executions and their calls to a `.jsonl` or `.parquet` file, oldest first; return the number.

        The filters are those of `query`. The file appears when it is complete. Raises `LogFileError`.

        Example:
        >>> hk.log.export("one_failure.jsonl", trace=failed.trace_id)
        1
        """
        self._bring_in_records()
        return self._files.export(Path(path), filters, overwrite=overwrite)

    def import_file(self, path: str | Path) -> Imported:
        """Import the missing executions of an exported or archived file; return the counts.

        They get new ids. Their trace ids identify them, so a second import changes nothing. Raises `LogFileError` at
        the first record that cannot be read; those before it are imported.

        Example:
        >>> _ = hk.log.export("failures.jsonl", trace=failed.trace_id)
        >>> with Healkit("other.db") as other:
        ...     other.log.import_file("failures.jsonl")
        Imported(read=1, added=1)
        """
        return self._files.bring_in(Path(path))

    def prune(
        self,
        *,
        older_than: timedelta | float | None = None,
        keep: int | None = None,
        archive: str | Path | None = None,
        format: ArchiveFormat = "jsonl",  # noqa: A002 - the usual word
    ) -> PruneReport:
        """Delete old executions, a few at a time, after moving them to a file in the folder `archive`, if given.

        older_than: Their age, in days unless it is a timedelta.
        keep: Number of newest executions to keep; both limits may be given.

        Without either, `retention_days` and `retention_rows` of the configuration apply. `store.retention` lists what
        is always kept. Raises `ConfigError`, and `LogFileError` without any loss.

        Example:
        >>> with Healkit("old.db") as old:
        ...     _ = old.vault.add("one", "def one(): return 1")
        ...     for _ in range(3):
        ...         _ = old.execute("one")
        ...     old.log.prune(keep=1).deleted
        2
        """
        days, rows = self._retention
        if older_than is None and keep is None:
            older_than, keep = days or None, rows or None
        if older_than is None and keep is None:
            raise ConfigError(
                "prune needs the age of what to delete, or how many executions to keep.",
                hint="Give older_than=… (days) or keep=… (rows), or set retention_days or retention_rows.",
            )
        age = timedelta(days=older_than) if isinstance(older_than, int | float) else older_than
        if (age is not None and age < timedelta(0)) or (keep is not None and keep < 0):
            raise ConfigError(f"older_than={older_than!r} and keep={keep!r} cannot be negative.")
        self._bring_in_records()
        if archive is None:
            return Retention(self._database).prune(age, keep)
        return self._files.archive(age, keep, Path(archive), f".{format}")

    @property
    def _files(self) -> LogFiles:
        files: LogFiles = hooks.first("log_files", database=self._database) or LogFiles(self._database)
        return files

    def _bring_in_records(self) -> None:
        if self._refresh is not None:
            self._refresh()

    def _reading(self) -> Any:
        self._bring_in_records()
        return self._database.read()

    def _first(self, statement: Select[Any]) -> ExecutionLog | None:
        with self._reading() as session:
            row: ExecutionLog | None = session.scalars(statement).first()
            return row

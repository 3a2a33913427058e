"""Questions to the log, its exports and its pruning.

Every question is answered from an index, or from the counts that triggers keep beside the log, so that
it costs at a million rows what it costs at ten thousand.
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


#: Formats of an archive.
ArchiveFormat = Literal["jsonl", "parquet"]


class Imported(NamedTuple):
    """Number of executions in a file, and of those that were new here."""

    read: int
    added: int


class LogFiles:
    """Files of executions; a part reads and writes them (`hooks.Specs.log_files`)."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def export(self, path: Path, filters: Filters, *, overwrite: bool) -> int:
        """Write the finished executions that the filters hold for, oldest first; return how many."""
        raise _WITHOUT_FILES

    def bring_in(self, path: Path) -> Imported:
        """Import the executions of a file that are not here yet, by trace id."""
        raise _WITHOUT_FILES

    def archive(
        self, older_than: timedelta | None, keep: int | None, folder: Path, suffix: str
    ) -> PruneReport:
        """Move executions older than that or beyond the newest so many to a file in that folder."""
        raise _WITHOUT_FILES


_WITHOUT_FILES = LogFileError("The part that reads and writes files of executions is not installed.")


class Log:
    """Executions on record; `hk.log`.

    refresh: called before each question, to bring in the records that wait in the spool. retention_days,
    retention_rows: the defaults of `prune`; 0 sets no bound.
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
        """Return one page, newest first.

        The filters are given by name, as `contracts.execution.Filters` says, or together as `filters`. Without trials
        and searches (`tried=False`), the page's `left_out` counts those that it leaves out. before_id, after_id:
        `next_before_id` or `next_after_id` of another page with the same filters.
        """
        with self._reading() as session:
            return read_page(session, filters, limit, before_id, after_id)

    def get(self, log_id: int) -> ExecutionLog | None:
        """Return the row of that id, or None; numpy's integers, as a frame of rows has them, are taken too."""
        number = operator.index(log_id) if hasattr(log_id, "__index__") else log_id
        return self._first(select(ExecutionLog).where(LOG.c.id == number))

    def by_trace(self, trace_id: str) -> ExecutionLog | None:
        """Return the row of that execution, or None."""
        return self._first(select(ExecutionLog).where(LOG.c.trace_id == trace_id))

    def calls(self, trace_id: str) -> list[ExecutionCall]:
        """Return the calls of that execution through the bridge, in the order in which the host received them."""
        statement = select(ExecutionCall).where(CALLS.c.trace_id == trace_id)
        with self._reading() as session:
            calls = list(session.scalars(statement))
        # t10 comes after t9, unlike in a database's order of texts.
        return sorted(calls, key=lambda call: (len(call.task_id), call.task_id))

    def decisions(self, trace_id: str) -> list[ExecutionDecision]:
        """Return the branches that the execution reported, in order."""
        statement = select(ExecutionDecision).where(DECISIONS.c.trace_id == trace_id)
        with self._reading() as session:
            return list(session.scalars(statement.order_by(DECISIONS.c.number)))

    def last_error(self, tool: str | None = None, persona: str | None = None) -> ExecutionLog | None:
        """Return the newest failure, of one tool and persona where they are given; None when there is none.

        Where a tool has none under its name, those under its former names count.
        Trials and searches do not count, here and in all that reports how a tool fares.
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
        """Return the names of tools that ever failed, sorted; persona: for that one."""
        if persona is not None:
            failed_for = select(GROUPS.c.tool_name).where(GROUPS.c.persona == persona).distinct()
            with self._reading() as session:
                return sorted(session.scalars(failed_for))
        # One jump through the index for each name; DISTINCT would read every failure there is.
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
        """Return the rows that have not ended, newest first: in progress, or orphans of a host that died."""
        with self._reading() as session:
            return list(session.scalars(newest_first([status_is("RUNNING")])))

    def count(self, *, status: str | None = None, tool: str | None = None, tried: bool = True) -> int:
        """Count the rows, of one status or tool where they are given; tried: trials and searches too.

        Of the failures, `REFUSED` are those calls that were refused before any code ran.
        """
        if status is not None:
            check_text("status", status)
        wanted = None if status is None else status_is(status)  # raises for one that does not exist
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
            # They are few; with the tool as a condition, SQLite would read all that the tool ever did.
            counts["RUNNING"] = sum(
                tool in {None, row.tool_name} and (tried or row.origin not in TRIED_ORIGINS)
                for row in session.execute(running)
            )
        return (
            sum(counts.values()) if wanted is None else {**counts, "REFUSED": refused}[status_of(str(status))]
        )

    @takes_filters()
    def count_refused(self, *, filters: Filters) -> int:
        """Count the filtered calls that were refused before any code ran, up to `TRIED_COUNTED_MAX`."""
        with self._reading() as session:
            return count_refused(session, filters)

    @takes_filters(*GROUP_FILTERS)
    def groups(self, *, filters: Filters, limit: int = 50) -> Groups:
        """Group failures by fingerprint, the one seen last first: how often, since when, and whether cured.

        since, until: when a group was last seen. They are failures of code; `left_out` counts the calls that were
        refused before any code ran, which status `REFUSED` groups, and `FAILURE` too.
        """
        with self._reading() as session:
            return read_groups(session, filters, limit)

    def passing_revisions(self, tool: str, persona: str, fingerprint: str) -> list[int]:
        """Return the revisions, in order, that passed with arguments for which that failure is on record."""
        with self._reading() as session:
            return read_passing_revisions(session, tool, persona, fingerprint)

    @takes_filters(*SUMMARY_FILTERS)
    def summary(self, *, filters: Filters, by: Sequence[str] = ()) -> Summary:
        """Sum up finished runs, failures, refused calls and durations of each tool, from counts that are kept by day.

        since, until: days in UTC, the latter exclusive. by: a row for each `persona`, `revision` or `day` too.
        """
        with self._reading() as session:
            return read_summary(session, filters, by)

    @takes_filters(*SUMMARY_FILTERS)
    def metrics(self, *, filters: Filters, by: Sequence[str] = ("revision",)) -> pd.DataFrame:
        """Return what ran, failed and was refused, and durations in ms, by tool and revision or by what is asked for.

        The arguments are those of `summary`; `p50_ms` and `p95_ms` are the longest that so many of the runs took, as
        `summary` counts them.
        """
        frame = self.summary(filters=filters, by=by).to_pandas()
        keys = ["tool_name", *(name for name in by if name != "tool_name")]
        if "revision" in keys:
            frame["revision"] = frame["revision"].astype("Int64")  # what was only tried has none
        return frame[[*keys, "runs", "failures", "refused", "failure_rate", "mean_ms", "p50_ms", "p95_ms"]]

    def prometheus(self) -> str:
        """Write finished executions and their durations, by tool and persona, in Prometheus' text format."""
        from healkit.core.store.stats import metrics_text  # late: only who scrapes needs it

        with self._reading() as session:
            return metrics_text(session)

    @takes_filters()
    def export(self, path: str | Path, *, filters: Filters, overwrite: bool = False) -> int:
        """Write finished executions, with their calls, to a `.jsonl` or `.parquet` file, oldest first; return how many.

        The filters are those of `query`. The file appears when it is whole. Raises `LogFileError`.
        """
        self._bring_in_records()
        return self._files.export(Path(path), filters, overwrite=overwrite)

    def import_file(self, path: str | Path) -> Imported:
        """Import the executions of an exported or archived file that are not here yet; return the counts.

        They get ids of their own; their trace ids identify them, so that a second import changes nothing. Raises
        `LogFileError` at the first record that cannot be read; those before it are imported.
        """
        return self._files.bring_in(Path(path))

    def prune(
        self,
        *,
        older_than: timedelta | float | None = None,
        keep: int | None = None,
        archive: str | Path | None = None,
        format: ArchiveFormat = "jsonl",  # noqa: A002 - the word for it
    ) -> PruneReport:
        """Delete old executions, a few at a time, after moving them to a file in the folder `archive`, if given.

        older_than: their age, in days unless it is a timedelta. keep: how many of the newest stay; both may be given.
        Without either, `retention_days` and `retention_rows` of the configuration count. `store.retention` lists
        what stays in any case. Raises `ConfigError`, and `LogFileError` with nothing lost.
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

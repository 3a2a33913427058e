"""`hk.map`: one execution an input, side by side.

Each input goes through the executor, like any execution, and gets its own row in the log. A tool that calls nothing and
reads no file runs in children of trial servers, or on the workers of an executor. Other tools get one worker each, on
this machine. The calling thread reads the inputs, a few ahead of the running ones. So neither a long file nor a slow
generator fills the memory.

A map that was stopped continues under its id. An input that has ended does not run again, unless it failed and the tool
has new code since then. An input with an unknown end runs again only if the tool cannot have changed anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import queue
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from healkit.core.contracts.execution import Started
from healkit.core.contracts.rpc import Init
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.pysource.tracebacks import fingerprint
from healkit.core.runtime import background
from healkit.core.runtime.events import Event, Sink
from healkit.core.runtime.execution import REDACTED
from healkit.core.runtime.executor import ExecutionRequest, fits_place
from healkit.core.store.arguments import pack_arguments
from healkit.core.workers.sandbox import Tier
from healkit.core.workers.worker import Outcome
from healkit.errors import ArgumentsInvalid, ConfigError, UsageInvalid, WorkerStartFailed, check_whole
from healkit.parts.maps.inputs import inputs_of, size_of
from healkit.parts.maps.record import INPUTS_MAX, Values, newest_rows, step_id
from healkit.parts.maps.report import FailureGroup, MapProgress, MapReport, progress_line
from healkit.parts.trials.places import Places
from healkit.parts.trials.trials import Trials
from healkit.plain_text import count, untick

if TYPE_CHECKING:
    from healkit.services import Services

#: Executions under way for each lane: of an executor enough for a share of some tenths of a second.
_AHEAD_HERE, _AHEAD_AWAY = 16, 256
#: Most failures that are counted separately.
_GROUPS_MAX = 1000
#: How often progress is shown, and how long a look for news takes at most.
_TELL_S, _LOOK_S = 0.25, 0.2
#: Ends that say nothing of the input: its worker or its host was lost, or it was stopped; and those before it was run.
_UNKNOWN_ENDS = {"WORKER_LOST", "HOST_DIED", "TOOL_KILLED", "WORKER_ERROR"}
_NOT_RUN = {"WORKER_START_FAILED", "WORKER_NOT_RESTRICTED", "WORKER_UNUSABLE", "ISOLATION_UNAVAILABLE"}


_SAME_INPUTS = (
    "A map continues with the same inputs in the same order. Leave out run_id= to start another one."
)


class _Stopped(Exception):
    """Raised when the caller asked to stop."""


class _Step(Sink):
    """Sink of one input's execution, which puts the map's id and the input's number into its row."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def take(self, started: Started, event: Event) -> None:
        """A map's record is its rows."""


class Maps:
    """Maps on one database.

    Example:
    >>> hk.maps.map("mean", [{"values": [1, 2]}, {"values": [3, 5]}]).done
    2
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def map(
        self,
        tool_name: str,
        inputs: Any,
        *,
        persona: str = "default",
        executor: Executor | None = None,
        parallel: int | None = None,
        timeout: float | None = None,
        retries: int = 2,
        progress: bool | Callable[[MapProgress], object] = True,
        run_id: str | None = None,
        client: str | None = None,
    ) -> MapReport:
        """Run a tool once for each input, restricted and on record, and return the results.

        inputs: Dicts of arguments (a list, a generator), a DataFrame whose columns are parameters, rows of the log, or
            the path of a `.jsonl`, `.csv` or `.parquet` file. A value that is not a dict is passed to the only
            parameter.
        executor: Any `concurrent.futures.Executor`. Its workers then do the work, in shares of about a second. Only for
            tools that call nothing and read no file.
        parallel: How many inputs run at a time; by default as many as there are processors, or workers of the executor.
        timeout: Seconds for each input.
        retries: How often an input runs again if its worker could not start. The same applies if the worker was lost
            and the tool cannot have changed anything.
        progress: Shows a line in the notebook or terminal; or a function that gets a `MapProgress` now and then.
        run_id: Continues the map with this id, which its report, or Ctrl-C, has shown. It must have the same inputs.

        The report's `to_pandas()` has the inputs with status, result, error and log row. An input whose arguments do
        not match is a failure of its own. Ctrl-C stops the map; it can continue later.

        Raises `ToolNotFound` and the like before anything runs. Raises `UsageInvalid` for unreadable inputs, or if they
        differ from those of the continued map. Raises `ConfigError` for an unusable executor, and
        `IsolationUnavailable` or `WorkerStartFailed` if no worker is available.

        Example:
        >>> report = hk.map("ratio", pd.DataFrame({"hits": [3, 1, 2], "games": [4, 0, 5]}))
        >>> report.done, report.failed
        (3, 1)
        >>> report.to_pandas()[["hits", "games", "status", "result"]]
           hits  games   status result
        0     3      4  SUCCESS   0.75
        1     1      0  FAILURE   None
        2     2      5  SUCCESS    0.4
        """
        check_whole("retries", retries)
        if parallel is not None and not (isinstance(parallel, int) and parallel > 0):
            raise ConfigError(f"parallel={parallel!r} must be at least 1.")
        entry = self._services.vault.active(tool_name, persona)
        if executor is not None and not fits_place(entry):
            raise ConfigError(
                f"{entry.label} calls other tools, reaches files, or has side effects: it runs only on this machine.",
                hint="Leave out executor=.",
            )
        work = _Map(self._services, entry, inputs, persona, retries, run_id)
        request = partial(
            ExecutionRequest, entry.tool_name, persona, timeout_s=timeout, origin="map", client=client
        )
        tell = progress if callable(progress) else progress_line() if progress else None
        trials = Trials(self._services.recorder, self._services.config)
        ahead = (_AHEAD_HERE if executor is None else _AHEAD_AWAY) if fits_place(entry) else 1
        with Places.opened(trials, parallel=parallel, executor=executor) as places:
            return work.run(request, places, ahead * places.count, tell, says=progress is True)

    async def amap(self, *args: Any, **options: Any) -> MapReport:
        """Do the same as `map`, for async code; cancelling it stops the map, which can continue later. Raises as `map`.

        Example:
        >>> report = asyncio.run(hk.amap("mean", [{"values": [1, 2]}, {"values": [3, 5]}]))
        >>> list(report.to_pandas()["result"])
        [1.5, 4.0]
        """
        stop = background.Stop()

        def work() -> MapReport:
            with stop.heard():
                return self.map(*args, **options)

        task = asyncio.create_task(asyncio.to_thread(work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stop.ask()
            await asyncio.wait([task])
            raise


background.show_parameters(Maps.amap, Maps.map)


class _End(NamedTuple):
    """End of one input: its log row, and the code, name and fingerprint of its failure, if any."""

    log_id: int | None
    code: str | None = None
    ename: str = ""
    fingerprint: str = ""


class _Map:
    """Run of one map."""

    def __init__(
        self,
        services: Services,
        entry: VaultEntry,
        inputs: Any,
        persona: str,
        retries: int,
        run_id: str | None,
    ) -> None:
        self._services, self._entry, self._inputs = services, entry, inputs
        self._id = run_id or f"map-{uuid.uuid4().hex[:12]}"
        self._light = fits_place(entry)
        #: Whether an input can be run twice without harm.
        self._harmless = self._light or not (entry.acts or "mcp" in entry.code)
        self._retries = retries
        self._earlier: Iterator[tuple[int, dict[str, Any]]] = iter(())
        if run_id is not None:
            if not re.fullmatch(r"map-[0-9a-f]{12}", run_id):
                raise UsageInvalid(
                    f"{run_id!r} is not the id of a map.", hint="A map's report has it: report.run_id."
                )
            services.recorder.ingest()
            services.recorder.recover_orphans()
            self._earlier = newest_rows(services.database, run_id)
        self._next_row = next(self._earlier, None)
        if run_id is not None and self._next_row is None:
            raise UsageInvalid(
                f"There is no map {run_id!r} in this database.", hint="Leave out run_id= to start one."
            )
        if self._next_row is not None:
            of_tool = self._next_row[1]["tool_name"], self._next_row[1]["persona"]
            if of_tool != (entry.tool_name, persona):
                raise UsageInvalid(
                    f"{run_id} is a map of {of_tool[0]!r} for {of_tool[1]!r}.", hint=_SAME_INPUTS
                )
        # What lies beside a database that is not trusted is not read, and nothing is put there.
        kept = entry.logged and services.database.trusted
        self._values = Values(services.database, self._id, kept=kept)
        self._groups: dict[str, FailureGroup] = {}
        self._clock_s = self._told_s = time.perf_counter()
        self._stop = background.heard_stop()
        self._tell: Callable[[MapProgress], object] | None = None
        self._ended: queue.SimpleQueue[Future[_End]] = queue.SimpleQueue()
        self._waiting: set[Future[_End]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._report = MapReport(services, entry, persona, self._id, inputs, self._values, size_of(inputs))

    def run(
        self,
        request: Callable[..., ExecutionRequest],
        places: Places,
        window: int,
        tell: Callable[[MapProgress], object] | None,
        *,
        says: bool,
    ) -> MapReport:
        """Run all inputs, at most `window` at a time, and return the report; called once.

        says: Print on stderr how to continue a stopped map.
        """
        report, self._tell = self._report, tell
        try:
            for number, arguments in self._todo():
                while len(self._waiting) >= window:
                    self._take()
                self._take(wait=False)
                future = background.loop.submit(self._one(number, arguments, request, places))
                self._waiting.add(future)
                future.add_done_callback(self._ended.put)
            while self._waiting:
                self._take()
        except _Stopped:
            report.stopped = True
        except BaseException:
            report.stopped = True
            raise
        finally:
            for future in self._waiting:
                future.cancel()
            background.loop.wait_for(self._settled())
            report.duration_s = self._elapsed_s
            report.groups = sorted(self._groups.values(), key=lambda group: -group.count)
            if tell is not None:
                tell(report.progress(self._elapsed_s))
            if report.stopped and says:
                print(untick(report.resume_sentence), file=sys.stderr)  # noqa: T201 - an exception would hide the id
        return report

    def _take(self, *, wait: bool = True) -> None:
        """Count the inputs that have ended.

        wait: Wait for one input, or for a moment.

        Raises `_Stopped`, and errors that end a map.
        """
        with contextlib.suppress(queue.Empty):
            while True:
                future = self._ended.get(wait, _LOOK_S)
                self._waiting.discard(future)
                self._count(future.result())
                wait = False
        if self._tell is not None and time.perf_counter() - self._told_s > _TELL_S:
            self._told_s = time.perf_counter()
            self._tell(self._report.progress(self._elapsed_s))
        if self._stop is not None and self._stop.asked:
            raise _Stopped

    @property
    def _elapsed_s(self) -> float:
        return time.perf_counter() - self._clock_s

    async def _settled(self) -> None:
        """Wait until the end of each task is on record."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _one(
        self,
        number: int,
        arguments: Mapping[str, Any],
        request: Callable[..., ExecutionRequest],
        places: Places,
    ) -> _End:
        """Run one input until its final outcome."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        sink = _Step(step_id(self._id, number))
        place = partial(self._placed, number, places) if self._light else None
        for attempt in itertools.count():
            is_last = attempt >= self._retries
            try:
                execution = await self._services.executor.perform(request(arguments, place=place), sink)
            except ArgumentsInvalid as error:
                return _End(error.log_id, error.code, type(error).__name__, error.code)
            except WorkerStartFailed:  # nothing was run
                if is_last:
                    raise
                continue
            failure = execution.uncleaned.failure
            if failure is None:
                if not self._light:
                    self._values.add(number, values.encode(execution.uncleaned.value)[0])
                return _End(execution.log_id)
            if failure.code != "WORKER_LOST" or is_last or not self._harmless:
                return _End(execution.log_id, failure.code, failure.ename, fingerprint(failure))
        raise AssertionError  # the loop ends by itself

    async def _placed(self, number: int, places: Places, init: Init, tier: Tier) -> Outcome:
        """Run an input in one of the places; its value is kept before its row says how it ended."""
        outcome = await places.run(init, tier)
        if outcome.complete is not None and outcome.complete.failure is None:
            self._values.add(number, bytes(outcome.complete.value))
        return outcome

    def _count(self, end: _End) -> None:
        report = self._report
        report.done += 1
        if end.code is None:
            return
        report.failed += 1
        if end.fingerprint not in self._groups:
            if len(self._groups) == _GROUPS_MAX:
                return
            self._groups[end.fingerprint] = FailureGroup(end.fingerprint, end.ename, end.log_id)
        self._groups[end.fingerprint].count += 1

    # A map that goes on.

    def _todo(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the inputs that have to run, with their numbers; count the others."""
        number = -1
        for number, arguments in enumerate(inputs_of(self._inputs, self._entry, self._services.log)):
            if number == INPUTS_MAX:
                raise UsageInvalid(f"A map has at most {INPUTS_MAX:,} inputs.")
            row = self._row_of(number)
            if row is None or self._is_again(number, row, arguments):
                yield number, arguments
            else:
                self._report.earlier += 1
                self._count(_End(row["id"], row["error_code"], row["ename"] or "", row["fingerprint"] or ""))
        if self._next_row is not None:
            raise UsageInvalid(
                f"There are {count(number + 1, 'input')}, but {self._id} had more.", hint=_SAME_INPUTS
            )

    def _row_of(self, number: int) -> dict[str, Any] | None:
        """Return the newest row of an input, None if it has none; inputs must be requested in order."""
        if self._next_row is None or self._next_row[0] != number:
            return None
        row, self._next_row = self._next_row[1], next(self._earlier, None)
        return row

    def _is_again(self, number: int, row: dict[str, Any], arguments: Mapping[str, Any]) -> bool:
        """Return whether an input with a row runs again; raise `UsageInvalid` if the row belongs to another input."""
        stored = row["arguments"]
        given: object = {}  # as an input that cannot cross is on record
        with contextlib.suppress(ArgumentsInvalid):
            packed = pack_arguments(self._entry.tool_name, arguments, self._services.recorder.secret_columns)
            given = json.loads(packed.logged)
        whole = isinstance(stored, dict) and self._entry.logged and REDACTED not in repr(stored)
        refused_early = stored == {} and row["status"] == "FAILURE"
        if whole and stored != given and not refused_early:
            raise UsageInvalid(
                f"Input {number} is not the one that {self._id} had there (log row {row['id']}).",
                hint=_SAME_INPUTS,
            )
        if row["status"] == "RUNNING":
            raise UsageInvalid(
                f"{self._id} is still running (log row {row['id']}).", hint="Wait until it ends, or stop it."
            )
        if row["status"] == "SUCCESS":
            return False
        if row["error_code"] in _UNKNOWN_ENDS:
            return self._harmless
        if row["error_code"] in _NOT_RUN:
            return True
        return bool(row["code_hash"] != self._entry.code_hash)

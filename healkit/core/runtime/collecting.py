"""Steps of one execution, collected while it runs.

This module also prepares records for the log.

Each `Healkit` has one `LogCleaner`. When an execution begins, the recorder gets a `StepCollector` from it. The bridge's
records pass through the collector on their way to the journal. A part that uses the steps in another way, such as for a
trace, replaces both with subclasses (`hooks.Specs.cleaner`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from healkit.config import Config
from healkit.core.contracts.execution import CallRecord, DecisionRecord, Finished, Record, Started, Step
from healkit.core.contracts.failure import Failure
from healkit.core.secrets.cleaner import (
    AnyRecord,
    Cleaner,
    Verbatim,
    cleaned_facts,
    cleaned_record,
    secret_columns,
)

#: Maximum number of running executions whose hidden values are remembered until they end.
_CLEANERS_MAX = 500


class LogCleaner:
    """Cleaner of records for the log, as configured; each `Healkit` has one.

    `cleaner` is called once. The sanitiser takes half a second to load. So a thread starts to load it when the first
    execution begins, while its worker starts.
    """

    def __init__(self, config: Config, cleaner: Callable[[], Cleaner] = Verbatim) -> None:
        self.config = config
        self._make_sanitizer = cleaner
        self._sanitizer: Cleaner | None = None
        self._verbatim = Verbatim()
        self._making, self._pid = threading.Lock(), os.getpid()
        self._warming: threading.Thread | None = None
        self._cleaners: dict[str, Cleaner] = {}

    @property
    def sanitizer(self) -> Cleaner:
        """Cleaner for pages, and for data that the log never stores uncleaned, regardless of `trace_raw`."""
        if self._sanitizer is None:
            with self._lock():
                self._sanitizer = self._sanitizer or self._make_sanitizer()
        return self._sanitizer

    @property
    def cleaner(self) -> Cleaner:
        """Cleaner of traces and run folders; it hides nothing if `trace_raw` is set."""
        return self._verbatim if self.config.trace_raw else self.sanitizer

    def _lock(self) -> threading.Lock:
        """Return the lock for making a cleaner; after a fork, a new one, because the holder of the old one is gone."""
        if self._pid != os.getpid():
            self._making, self._pid = threading.Lock(), os.getpid()
        return self._making

    def collector(self, started: Started, served: str = "", steps: Iterable[Step] = ()) -> StepCollector:
        """Make the collector of an execution; `started` is its uncleaned record.

        served: The persona whose entry it runs, if it differs from the requested one.
        steps: Steps that are already recorded.
        """
        return StepCollector(self, started, served, steps)

    def warm_up(self) -> None:
        """Start to load the sanitiser in a thread."""
        if self._warming is None and self._sanitizer is None:
            self._warming = threading.Thread(target=self._warm, name="healkit-cleaner", daemon=True)
            self._warming.start()

    def _warm(self) -> None:
        with suppress(Exception):  # the next caller gets the error
            _ = self.sanitizer

    def for_log(self, record: AnyRecord) -> AnyRecord:
        """Return the record in the form for the log: cleaned if `sanitize_log` is set, else without secret facts."""
        if self.config.sanitize_log:
            return cleaned_record(record, self._cleaner_for(record))
        if isinstance(record, Finished) and record.failure is not None:
            return msgspec.structs.replace(record, failure=self.without_secret_facts(record.failure))
        return record

    def _cleaner_for(self, record: Record) -> Cleaner:
        """Return the cleaner of the record's execution; values hidden in its arguments are hidden in its message."""
        with self._lock():
            cleaner = self._cleaners.pop(record.trace_id, None)
        cleaner = cleaner or self.sanitizer.of_record()
        if not isinstance(record, Finished):
            with self._lock():
                self._cleaners[record.trace_id] = cleaner
                if len(self._cleaners) > _CLEANERS_MAX:
                    del self._cleaners[next(iter(self._cleaners))]
        return cleaner

    def secret_columns(self, columns: Mapping[str, Sequence[Any]]) -> set[str]:
        """Return the names of the columns that no preview may show, judged by name and first values."""
        return secret_columns(self.sanitizer, columns)

    def without_secret_facts(self, failure: Failure | None) -> Failure | None:
        """Return the failure with cleaned facts about live objects, or without these facts if cleaning fails."""
        if failure is None or not any(member.observed for member in (failure, *failure.linked)):
            return failure
        try:
            return cleaned_facts(failure, self.sanitizer)
        except Exception:  # noqa: BLE001 - facts about a failure must not break the execution
            return msgspec.structs.replace(failure, near=[], known=[], facts={}, linked=[])


class StepCollector:
    """Collector of one execution's calls and decisions; the bridge's threads may use it."""

    def __init__(
        self, cleaner: LogCleaner, started: Started, served: str, steps: Iterable[Step] = ()
    ) -> None:
        self._cleaner = cleaner
        self._started, self._served = started, served or started.persona
        self._calls: dict[str, CallRecord] = {}
        self._decisions: dict[int, DecisionRecord] = {}
        #: Whole result as JSON text, if the log stores only a part of it.
        self.result: str | None = None
        for step in steps:
            self.add(step)

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Branches that the tool reported, in order."""
        return [self._decisions[number] for number in sorted(self._decisions)]

    def add(self, step: Step) -> None:
        """Note a call's beginning or end, or a decision."""
        if isinstance(step, CallRecord):
            self._calls[step.task_id] = step
        else:
            self._decisions[step.number] = step

    def taken(self, step: Step) -> Step:
        """Note a call or a decision, and return it in the form for the log."""
        self.add(step)
        return self._cleaner.for_log(step)

    def conclude(self, finished: Finished) -> Finished:
        """Return the ending in the form for storage, with the product of the steps; called once."""
        return finished

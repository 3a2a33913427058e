"""Steps of one execution, gathered while it runs.

And records as the log keeps them.

Each `Healkit` has one `LogCleaner`. The recorder asks it for a `StepCollector` as an execution begins; the bridge's
records pass through that on their way to the journal. A part that makes more of the steps, such as a trace, puts a
subclass of both in their place (`hooks.Specs.cleaner`).
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

#: Executions that are running at once, whose hidden values are remembered to the end.
_CLEANERS_MAX = 500


class LogCleaner:
    """Cleaner of records for the log, as configured; one for each `Healkit`.

    `cleaner` is called once. The sanitiser takes half a second to load the first time, so a thread begins to load it
    when the first execution begins, while its worker starts.
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
        """Cleaner of what a page shows, and of what the log never holds as it was, whatever `trace_raw` says."""
        if self._sanitizer is None:
            with self._lock():
                self._sanitizer = self._sanitizer or self._make_sanitizer()
        return self._sanitizer

    @property
    def cleaner(self) -> Cleaner:
        """Cleaner of traces and run folders: none where `trace_raw` is set."""
        return self._verbatim if self.config.trace_raw else self.sanitizer

    def _lock(self) -> threading.Lock:
        """Return the lock for making a cleaner; a new one after a fork, where the old one's holder is gone."""
        if self._pid != os.getpid():
            self._making, self._pid = threading.Lock(), os.getpid()
        return self._making

    def collector(self, started: Started, served: str = "", steps: Iterable[Step] = ()) -> StepCollector:
        """Make the collector of an execution; `started` is its record, uncleaned.

        served: the persona whose entry it runs, where that is not the one that was asked for. steps: those that are on
        record already.
        """
        return StepCollector(self, started, served, steps)

    def warm_up(self) -> None:
        """Begin to load the sanitiser, on a thread of its own."""
        if self._warming is None and self._sanitizer is None:
            self._warming = threading.Thread(target=self._warm, name="healkit-cleaner", daemon=True)
            self._warming.start()

    def _warm(self) -> None:
        with suppress(Exception):  # the next caller gets the error
            _ = self.sanitizer

    def for_log(self, record: AnyRecord) -> AnyRecord:
        """Return the record as the log keeps it: cleaned where `sanitize_log` is set, else without secret facts."""
        if self.config.sanitize_log:
            return cleaned_record(record, self._cleaner_for(record))
        if isinstance(record, Finished) and record.failure is not None:
            return msgspec.structs.replace(record, failure=self.without_secret_facts(record.failure))
        return record

    def _cleaner_for(self, record: Record) -> Cleaner:
        """Return the cleaner of the execution that the record belongs to: its arguments tell what its message holds."""
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
        """Return the names of the columns, of these with their first values, of which no preview shows anything."""
        return secret_columns(self.sanitizer, columns)

    def without_secret_facts(self, failure: Failure | None) -> Failure | None:
        """Return the failure with what was read off live objects cleaned, or without it where that fails."""
        if failure is None or not any(member.observed for member in (failure, *failure.linked)):
            return failure
        try:
            return cleaned_facts(failure, self.sanitizer)
        except Exception:  # noqa: BLE001 - an execution must not fail for what is said of its failure
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
        #: Whole result as JSON text, where the log keeps only a part of it.
        self.result: str | None = None
        for step in steps:
            self.add(step)

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Branches the tool reported, in order."""
        return [self._decisions[number] for number in sorted(self._decisions)]

    def add(self, step: Step) -> None:
        """Take note of a call's beginning or end, or of a decision."""
        if isinstance(step, CallRecord):
            self._calls[step.task_id] = step
        else:
            self._decisions[step.number] = step

    def taken(self, step: Step) -> Step:
        """Take note of a call or a decision, and return it as the log keeps it."""
        self.add(step)
        return self._cleaner.for_log(step)

    def conclude(self, finished: Finished) -> Finished:
        """Return the ending as it is stored, with what was made of the steps; called once."""
        return finished

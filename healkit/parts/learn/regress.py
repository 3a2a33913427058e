"""`hk.regress`: recorded runs again, with other code.

The order is that of `trials.order`, so that a fault shows early if time is short. Each run has its recorded arguments.
Its calls are answered from the record, and no call is made. So it is recorded as a trial, and statistics ignore it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Fold, Line, Span, Table
from healkit.core.rendering.execution_card import result_text
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime.background import no_output
from healkit.core.runtime.calls import Provider
from healkit.core.runtime.execution import Execution, arguments_of, nested_grants, result_of
from healkit.core.runtime.executor import ExecutionRequest, fits_place
from healkit.errors import ArgumentsInvalid, ConfigError, HealkitError, ViewError
from healkit.parts.learn.facts import NOT_ITS_OWN
from healkit.parts.trials.cassette import Replay, cassette_of
from healkit.parts.trials.order import order, recorded_of

if TYPE_CHECKING:
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.core.runtime.runner import Runner
    from healkit.core.store.log_reader import Log
    from healkit.core.store.models import ExecutionLog
    from healkit.parts.trials.places import Places

#: Rows of the log that are looked at, newest first.
_ROWS_MAX = 1000
#: A re-run may take so many times as long as the run did, and at least so long.
_LIMIT_TIMES, _LIMIT_LEAST_S = 10.0, 2.0
_SHOWN_MAX = 20

#: `same`. `fixed`: it failed then, and returns now. `differs`: another value, another exception, or it fails now.
#: `as_active`: it differs from the record, but the active code does too, so this code is not the cause (chance, or an
#: earlier fix). `undecided`: it made a call that is not on record, would write, or would read a file that was not
#: named.
Outcome = Literal["same", "fixed", "differs", "as_active", "undecided"]


@dataclasses.dataclass(frozen=True)
class Rerun:
    """Recorded run that ran again: its results then and now, each in one line."""

    log_id: int
    outcome: Outcome
    recorded: str
    now: str
    duration_ms: float


@dataclasses.dataclass(frozen=True)
class RegressReport:
    """Report of re-runs, in the order in which they were made.

    label: The tool and revision.
    reruns: The re-runs.
    not_reached: Log rows for which the budget had no time.
    left_out: How many runs the log does not contain completely.
    """

    label: str
    reruns: tuple[Rerun, ...]
    not_reached: tuple[int, ...]
    left_out: int
    duration_s: float

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """Number of re-runs of each outcome."""
        return Counter(rerun.outcome for rerun in self.reruns)

    @property
    def faults(self) -> tuple[Rerun, ...]:
        """Runs that differ from the record because of this code."""
        return tuple(rerun for rerun in self.reruns if rerun.outcome == "differs")

    @property
    def first_fault_after(self) -> int | None:
        """Number of re-runs until the first one that differs; None if none does."""
        numbers = (number for number, rerun in enumerate(self.reruns, 1) if rerun.outcome == "differs")
        return next(numbers, None)

    def __str__(self) -> str:
        return text_of(self._card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(self._card())

    def _card(self) -> Card:
        faults, counts = self.faults, self.counts
        ended = f"{plain.count(len(faults), 'recorded run')} of {len(self.reruns):,} differ{'s' * (len(faults) == 1)}"
        title = f"{self.label}: {ended if faults else 'no recorded run differs'}"
        words = {
            "same": "as recorded",
            "fixed": "failed then, not now",
            "as_active": "also differ with the active code",
        }
        phrases = [f"{counts[outcome]:,} {text}" for outcome, text in words.items() if counts[outcome]]  # type: ignore[index]  # outcomes
        phrases += (
            [f"{counts['undecided']:,} undecided: a call or a file is missing"] if counts["undecided"] else []
        )
        phrases += [f"first difference after {self.first_fault_after}"] if faults else []
        phrases += [f"{len(self.not_reached):,} not reached"] if self.not_reached else []
        phrases += [f"{self.left_out:,} not completely recorded"] if self.left_out else []
        lines = [Line(Span(", ".join(phrases) or "no recorded executions to run again", "quiet"))]
        rows = [(f"#{rerun.log_id}", rerun.recorded, rerun.now) for rerun in (*faults, *self._of("fixed"))]
        table = Table(("row", "recorded", "now"), rows[:_SHOWN_MAX])
        more = (
            [Line(Span(f"… and {len(rows) - _SHOWN_MAX:,} more", "quiet"))] if len(rows) > _SHOWN_MAX else []
        )
        tone: Literal["bad", "good"] = "bad" if faults else "good"
        return Card(
            title, "✗" if faults else "✓", tone, lines, [Fold("runs", (table, *more))] if rows else []
        )

    def _of(self, outcome: Outcome) -> tuple[Rerun, ...]:
        return tuple(rerun for rerun in self.reruns if rerun.outcome == outcome)


class Regression:
    """Re-runs of one tool's recorded runs; made for one report."""

    def __init__(
        self,
        runner: Runner,
        log: Log,
        entry: VaultEntry,
        providers: Mapping[str, Provider],
        persona: str,
        files: tuple[str, ...] = (),
        places: Places | None = None,
    ) -> None:
        #: Where its runs are: none for a tool that needs workers of its own, one at a time.
        self._place = None if places is None or not fits_place(entry) else places.run
        self._parallel = 1 if places is None or self._place is None else places.count
        self._runner, self._entry, self._persona, self._files = runner, entry, persona, files
        page = log.query(tool=entry.tool_name, persona=persona, tried=False, refused=False, limit=_ROWS_MAX)
        self._left_out = 0
        different: dict[str, ExecutionLog] = {}
        for row in page.rows:
            if row.status == "RUNNING" or row.error_code in NOT_ITS_OWN:
                continue
            if not isinstance(row.arguments, dict):
                self._left_out += 1
                continue
            different.setdefault(json.dumps(row.arguments, sort_keys=True), row)
        self._rows = list(different.values())
        self._tape = Tape(cassette_of(log, self._rows, entry, providers))

    def report(self, code: str | None, budget_s: float) -> RegressReport:
        """Run until the budget is spent, and return the report; called by `Healkit.regress`."""
        if not budget_s > 0:
            raise ConfigError(f"budget_s={budget_s!r} must be greater than 0 seconds.")
        began, reruns = time.monotonic(), []
        codes = [self._entry.code] if code is None else [self._entry.code, code]
        ordered = [self._rows[at] for at in order([recorded_of(row) for row in self._rows], *codes)]
        left_out, reached, is_over = self._left_out, 0, False
        with ThreadPoolExecutor(self._parallel) as threads:
            while reached < len(ordered) and not is_over:
                left_s = budget_s - (time.monotonic() - began)
                if left_s <= 0:
                    break
                rerun = functools.partial(self._rerun_or_why, code=code, left_s=left_s)
                for done in threads.map(rerun, ordered[reached : reached + self._parallel]):
                    if done is None:
                        is_over = True
                        break
                    reached += 1
                    if isinstance(done, Rerun):
                        reruns.append(done)
                    else:
                        left_out += 1
        missed = tuple(int(row.id or 0) for row in ordered[reached:])
        return RegressReport(self._entry.label, tuple(reruns), missed, left_out, time.monotonic() - began)

    def _rerun_or_why(
        self, row: ExecutionLog, *, code: str | None, left_s: float
    ) -> Rerun | HealkitError | None:
        """Do the same as `_rerun`; return the error if the arguments are not complete."""
        try:
            return self._rerun(row, code, left_s)
        except (ArgumentsInvalid, ViewError) as error:
            return error

    def _rerun(self, row: ExecutionLog, code: str | None, left_s: float) -> Rerun | None:
        """Run it again; None if the budget ended it."""
        limit_s = max(_LIMIT_LEAST_S, _LIMIT_TIMES * (row.duration_ms or 0.0) / 1000)
        now = self._perform(row, code, min(limit_s, left_s))
        if left_s < limit_s and now.failure is not None and now.failure.code == "TOOL_TIMEOUT":
            return None
        outcome = self._compared(row, now)
        if outcome == "differs" and code is not None and _equal(now, self._perform(row, None, limit_s)):
            outcome = "as_active"
        then = row.ename or plain.one_line(row.result_summary or "", 60)
        return Rerun(int(row.id or 0), outcome, then, _said(now), now.duration_ms or 0.0)

    def _perform(self, row: ExecutionLog, code: str | None, timeout_s: float) -> Execution:
        return self._runner.perform(
            ExecutionRequest(
                self._entry.tool_name,
                self._persona,
                arguments_of(row),
                timeout_s=timeout_s,
                origin="trial",
                on_output=no_output,
                code=self._entry.code if code is None else code,
                within=nested_grants(row),
                record=False,
                replay=Replay.of(self._tape, str(row.id)),
                files=None if code in (None, self._entry.code) else self._files,
                place=self._place,
            )
        )

    def _compared(self, row: ExecutionLog, now: Execution) -> Outcome:
        failure = now.failure
        if failure is not None:
            writes = self._entry.grants.write and failure.ename in ("OSError", "PermissionError")
            if writes or failure.code == "CALL_NOT_ON_RECORD":
                return "undecided"
            return "same" if row.status == "FAILURE" and failure.ename == row.ename else "differs"
        if row.status == "FAILURE":
            return "fixed"
        try:
            expected = values.kept(result_of(row))
        except ValueError:  # it was cut: only that it returned is known
            return "same"
        return "same" if values.meets(expected, now.value) else "differs"


def _equal(one: Execution, other: Execution) -> bool:
    if one.failure is None or other.failure is None:
        return one.failure is other.failure and values.meets(values.kept(one.value), other.value)
    return one.failure.ename == other.failure.ename


def _said(execution: Execution) -> str:
    text = result_text(execution) if execution.failure is None else execution.failure.summary
    return plain.one_line(text, 60)

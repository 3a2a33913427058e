"""Report of a map, and its progress while it goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.core.crossing import values
from healkit.core.rendering import cleaning
from healkit.core.rendering.document import Card, Line, Only, Span, Table, Tone
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime.background import notebook_display
from healkit.errors import UsageInvalid
from healkit.parts.maps.inputs import inputs_of
from healkit.parts.maps.record import Values, newest_rows
from healkit.plain_text import count, one_line

if TYPE_CHECKING:
    import pandas as pd
    from IPython.lib.pretty import RepresentationPrinter

    from healkit.services import Services

_GROUPS_SHOWN, _SUMMARY_CHARS = 10, 100
_NOT_HERE = "its result is not on this machine"


@dataclasses.dataclass(frozen=True)
class MapProgress:
    """Progress of a map: ended inputs, all inputs if known, failures, and the elapsed seconds.

    earlier: How many inputs had ended before the map continued.
    """

    tool: str
    run_id: str
    done: int
    total: int | None
    failed: int
    earlier: int
    elapsed_s: float

    @property
    def rate(self) -> float:
        """Number of inputs per second."""
        return (self.done - self.earlier) / max(self.elapsed_s, 1e-6)

    @property
    def left_s(self) -> float | None:
        """Seconds for the remaining inputs at this rate; None if that is unknown."""
        return (self.total - self.done) / self.rate if self.total is not None and self.rate else None

    def __str__(self) -> str:
        of_all = "" if self.total is None else f" of {self.total:,} ({self.done / max(self.total, 1):.0%})"
        left_s = self.left_s
        left = "" if not left_s or self.done == self.total else f", {_clock(left_s)} left"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"{self.tool}: {self.done:,}{of_all}{failed}, {self.rate:,.0f} a second{left}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


def progress_line() -> Callable[[MapProgress], object] | None:
    """Return what shows progress for the caller: in a cell, on a terminal, or nowhere (None)."""
    if notebook_display() is not None:
        from IPython.display import display

        handle = display({"text/plain": ""}, raw=True, display_id=True)
        return lambda progress: handle.update({"text/plain": str(progress)}, raw=True)
    if not sys.stderr.isatty():
        return None
    return lambda progress: print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)  # noqa: T201 - the progress bar of a terminal


@dataclasses.dataclass
class FailureGroup:
    """Failures of a map that are the same, by their fingerprint, with the log row of the first."""

    fingerprint: str
    ename: str
    log_id: int | None
    count: int = 0


class MapReport:
    """Report of a map: how many inputs ended how, the failures in groups, and the results as a frame.

    `run_id` continues the map. `total` is the number of inputs, None if unknown; `done` have ended, `failed` of them
    with a failure; `earlier` had ended before the map continued. `stopped`: the map was stopped before the end.
    `groups`: the failures, most frequent first.
    """

    def __init__(
        self,
        services: Services,
        entry: VaultEntry,
        persona: str,
        run_id: str,
        inputs: Any,
        kept: Values,
        total: int | None,
    ) -> None:
        self._services, self._entry, self._persona = services, entry, persona
        self._inputs, self._values = inputs, kept
        self.run_id, self.total = run_id, total
        self.done = self.failed = self.earlier = 0
        self.stopped = False
        self.duration_s = 0.0
        self.groups: list[FailureGroup] = []

    @property
    def ok(self) -> bool:
        """True if all inputs have ended without a failure."""
        return not (self.stopped or self.failed)

    @property
    def resume_sentence(self) -> str:
        """Say how to continue a stopped map."""
        of_all = "" if self.total is None else f" of {self.total:,}"
        call = f"hk.map({self._entry.tool_name!r}, inputs{self._for_persona}, run_id={self.run_id!r})"
        return f"Stopped after {self.done:,}{of_all}. To continue with the same inputs: `{call}`"

    @property
    def _for_persona(self) -> str:
        """Argument with the persona for a call, if it is not the default."""
        return "" if self._persona == DEFAULT_PERSONA else f", persona={self._persona!r}"

    def progress(self, elapsed_s: float) -> MapProgress:
        """Return its progress."""
        tool = self._entry.tool_name
        return MapProgress(tool, self.run_id, self.done, self.total, self.failed, self.earlier, elapsed_s)

    def heal(self, group: FailureGroup | None = None, **options: Any) -> Any:
        """Heal the tool from the first failure of a group, by default the most frequent; options as for `hk.heal`.

        Then the map can continue with `run_id=`: failed inputs run again with the new code. Raises `UsageInvalid` if no
        input failed.
        """
        if group is None and not self.groups:
            raise UsageInvalid("No input of this map failed.", hint="There is nothing to heal.")
        return self._services.heal(
            self._entry.tool_name, self._persona, log_id=(group or self.groups[0]).log_id, **options
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each input that has a row, in order: its number, arguments, status, result, error and log row."""
        for number, row in newest_rows(self._services.database, self.run_id):
            yield {
                "number": number,
                "arguments": row["arguments"],
                **self._outcome(number, row),
            }

    def to_pandas(self) -> pd.DataFrame:
        """Return the inputs as a frame, with the columns status, result, error and log_id beside them.

        An input that did not run has no status. If a column of the inputs already has one of these names, the column of
        the result gets a `_` at its end.
        """
        import pandas as pd

        frame: pd.DataFrame
        blank = {"status": None, "result": None, "error": "", "log_id": None}
        rows: dict[int, dict[str, Any]] = {}
        recorded: list[Any] = []
        for number, row in newest_rows(self._services.database, self.run_id):
            rows[number] = self._outcome(number, row)
            recorded.append(row["arguments"])
        if hasattr(self._inputs, "iloc"):
            frame = self._inputs.copy()
        elif hasattr(self._inputs, "__next__"):  # it could be read only once
            frame = pd.DataFrame([_arguments(stored) for stored in recorded])
        else:
            frame = pd.DataFrame(
                [dict(given) for given in inputs_of(self._inputs, self._entry, self._services.log)]
            )
        outcomes = [rows.get(number, blank) for number in range(len(frame))]
        for name in blank:
            column = pd.Series([outcome[name] for outcome in outcomes], index=frame.index, dtype=object)
            frame[f"{name}_" if name in frame else name] = (
                column.astype("Int64") if name == "log_id" else column
            )
        return frame

    def _outcome(self, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        error, value = "", None
        if row["status"] == "FAILURE":
            cleaner = cleaning.sanitizer().of_record()
            cleaning.arguments(_arguments(row["arguments"]), cleaner)
            error = cleaner.text(f"{row['ename']}: {row['evalue']}").value
        if row["status"] == "SUCCESS":
            try:
                value = self._values.get(number)
            except (KeyError, values.BadValue):
                error = _NOT_HERE
        return {"status": row["status"], "result": value, "error": error, "log_id": row["id"]}

    def __str__(self) -> str:
        return text_of(self._card())

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return html_of(self._card())

    def __repr__(self) -> str:
        return f"<MapReport {self.run_id}: {self.done:,} done, {self.failed:,} failed>"

    def _card(self) -> Card:
        returned = self.done - self.failed
        ended = f"{count(returned, 'input')} returned, {self.failed:,} failed"
        tone: Tone = "good" if self.ok else "bad" if self.failed else "warn"
        seconds = f"{self.duration_s:,.1f} s"
        earlier = f", {self.earlier:,} of them before" if self.earlier else ""
        lines = [Line(Span(f"{seconds}{earlier}, {self.run_id}", "quiet"))]
        parts: list[Any] = []
        if self.groups:
            rows = [
                (f"{group.count:,}", one_line(self._summary(group), _SUMMARY_CHARS), f"#{group.log_id}")
                for group in self.groups[:_GROUPS_SHOWN]
            ]
            parts.append(Table(("inputs", "error", "first row"), rows))
            if (more := len(self.groups) - _GROUPS_SHOWN) > 0:
                parts.append(Line(Span(f"… and {count(more, 'other error')}", "quiet")))
            call = f"hk.heal({self._entry.tool_name!r}{self._for_persona}, log_id={self.groups[0].log_id})"
            heal = f"`{call}` looks for a fix of the first failure."
            parts.append(Only("html", Line(Span(heal, "ticked"))))
        if self.stopped:
            parts.append(Line(Span(self.resume_sentence, "ticked")))
        return Card(f"{self._entry.label}: {ended}", "✓" if self.ok else "✗", tone, lines, parts)

    def _summary(self, group: FailureGroup) -> str:
        """Return the first failure of a group as text, without secrets."""
        execution = None if group.log_id is None else self._services.history.execution(group.log_id)
        failure = None if execution is None else execution.failure
        return group.ename if failure is None else failure.summary


def _arguments(stored: object) -> dict[str, Any]:
    """Return recorded arguments, as far as they exist."""
    if not isinstance(stored, dict):
        return {}
    with contextlib.suppress(values.BadValue):
        return dict(values.restored_value(stored))
    return stored

"""Plots of failure rates and durations over time.

matplotlib is an extra (`healkit[plot]`). The figure is made without pyplot, which would keep it in a global list and
need a backend. So the object itself draws it into a PNG, and a notebook shows it with any backend.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.execution import Ran, ToolSummary
from healkit.core.contracts.tools import revision_label
from healkit.core.rendering import plain
from healkit.errors import PlotUnavailable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
#: Colours that colour-blind readers can tell apart, also in grey (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_COLUMNS = ("tool", "runs", "failed", "p50 ≤", "p95 ≤")


class Plot:
    """Figure, and its numbers as a table; `figure` is matplotlib's."""

    def __init__(self, figure: Figure, table: str) -> None:
        self.figure = figure
        self._table = table

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file in any format that matplotlib knows by the file extension."""
        self.figure.savefig(path, dpi=_DPI)
        return Path(path)

    def png(self) -> bytes:
        """Draw the figure as a PNG."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()

    def __repr__(self) -> str:
        return self._table

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Return the data for Jupyter; called by IPython's display formatter."""
        import base64

        return {"text/plain": self._table, "image/png": base64.b64encode(self.png()).decode()}


def plot_days(metrics: Sequence[ToolSummary]) -> Plot:
    """Draw one line for each tool and revision, with one point a day."""
    figure, rates, times = _axes()
    series: dict[str, list[ToolSummary]] = {}
    for row in metrics:
        series.setdefault(_label(row), []).append(row)
    for (label, rows), colour in zip(series.items(), itertools.cycle(_COLOURS), strict=False):
        days = [row.day for row in rows]
        rates.plot(days, [100 * row.failure_rate for row in rows], "o-", color=colour, label=label)
        times.plot(days, [row.p50_ms for row in rows], "o-", color=colour, label=f"{label}, half of the runs")
        times.plot(days, [row.p95_ms for row in rows], "^:", color=colour, alpha=0.6)
    return _finished(figure, rates, times, metrics)


def plot_runs(runs: Sequence[Ran], metrics: Sequence[ToolSummary]) -> Plot:
    """Draw one mark for each run of one tool: its time and how long it took; and each revision's failure rate."""
    figure, rates, times = _axes()
    numbers = list(dict.fromkeys(run.revision for run in runs))
    for number, colour in zip(numbers, itertools.cycle(_COLOURS), strict=False):
        mine = [run for run in runs if run.revision == number]
        label = "no revision" if number is None else f"v{number}"
        failed = [run for run in mine if run.failed]
        rate = 100 * len(failed) / len(mine)
        rates.plot([mine[0].timestamp, mine[-1].timestamp], [rate, rate], "o-", color=colour, label=label)
        for mark, chosen in (("o", [run for run in mine if not run.failed]), ("x", failed)):
            timed = [run for run in chosen if run.duration_ms is not None]
            times.plot([r.timestamp for r in timed], [r.duration_ms for r in timed], mark, color=colour)
    return _finished(figure, rates, times, metrics)


def _axes() -> tuple[Figure, Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotUnavailable(
            "Plots need matplotlib, which is not installed.",
            hint="Run pip install 'healkit[plot]'; hk.log.metrics() gives the numbers without plots.",
        ) from None
    figure = Figure(figsize=(8.5, 4.8), layout="constrained", facecolor="white")
    rates, times = figure.subplots(2, 1, sharex=True)
    return figure, rates, times


def _finished(figure: Figure, rates: Axes, times: Axes, metrics: Sequence[ToolSummary]) -> Plot:
    rates.set_ylabel("failed, %")
    rates.set_ylim(-5, 105)
    times.set_ylabel("duration, ms (x: failed)")
    times.set_yscale("log")
    times.margins(y=0.2)
    for axes in (rates, times):
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    if metrics:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        rates.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
        locator = AutoDateLocator()
        times.xaxis.set_major_locator(locator)
        times.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    rows = []
    for row in metrics:
        took = [plain.duration(time) for time in (row.p50_ms, row.p95_ms)]
        rows.append((_label(row), f"{row.runs:,}", f"{100 * row.failure_rate:.0f} %", *took))
    return Plot(figure, plain.text_table(_COLUMNS, rows))


def _label(row: ToolSummary) -> str:
    return revision_label(row.tool_name, row.persona or "default", row.revision)

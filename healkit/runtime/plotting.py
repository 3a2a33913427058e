"""What is drawn of the log: each run of one tool, or each day of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from healkit.contracts.records import TRIED_ORIGINS
from healkit.contracts.stats import Ran
from healkit.rendering.plots import Plot, plot_days, plot_runs

if TYPE_CHECKING:
    from healkit.store.log import Log

#: Of so many runs each is drawn; of more, each day.
_EACH_MAX = 2000


def plot_of(log: Log, **where: Any) -> Plot:
    """The plot of what the filters of `Log.summary` choose; raises `PlotUnavailable`."""
    if where.get("tool") is not None:
        page = log.query(**where, limit=_EACH_MAX)
        if len(page.rows) < _EACH_MAX:
            runs = [
                Ran(row.timestamp, row.status == "FAILURE", row.revision, row.duration_ms)
                for row in reversed(page.rows)
                if row.status != "RUNNING" and row.origin not in TRIED_ORIGINS
            ]
            return plot_runs(runs, log.summary(**where, by=["revision"]).rows)
    return plot_days(log.summary(**where, by=["revision", "day"]).rows)

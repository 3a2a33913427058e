"""Executions of a database, as metrics for Prometheus.

FAILURE counts failures of code; calls that were refused before any code ran have the status REFUSED.

They are read from the counts by day, so they cost the same for any number of rows. They count what is on record:
where retention deletes, a count falls, which Prometheus takes for a restart of the counter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from healkit.store.models import DAYS

#: The class of durations that is longer than all others.
_LONGER_MS = 2_000_000_000
_SUMS = ("runs", "failures", "refused", "total_us")


class _Executions(Collector):
    """Metrics made of rows with tool, persona, class of durations and sums; sorted by them."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = list(rows)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; called by the registry."""
        counts = CounterMetricFamily(
            "healkit_executions", "Finished executions.", labels=["tool", "persona", "status"]
        )
        seconds = HistogramMetricFamily(
            "healkit_execution_seconds", "Time of finished executions.", labels=["tool", "persona"]
        )
        for key, found in itertools.groupby(self._rows, key=lambda row: (row.tool_name, row.persona)):
            rows, labels = list(found), list(key)
            runs, failures, refused = (
                sum(int(getattr(row, name)) for row in rows) for name in ("runs", "failures", "refused")
            )
            counts.add_metric([*labels, "SUCCESS"], runs - failures - refused)
            counts.add_metric([*labels, "FAILURE"], failures)
            counts.add_metric([*labels, "REFUSED"], refused)
            timed = [row for row in rows if row.within_ms]
            passed, buckets = 0, []
            for row in timed:
                passed += int(row.runs)
                if row.within_ms < _LONGER_MS:
                    buckets.append((f"{row.within_ms / 1000:g}", passed))
            total_s = sum(int(row.total_us) for row in timed) / 1e6
            seconds.add_metric(labels, [*buckets, ("+Inf", passed)], total_s)
        yield counts
        yield seconds


def metrics_text(session: Session) -> str:
    """Write the metrics in Prometheus' text format; trials and searches do not count."""
    keys = (DAYS.c.tool_name, DAYS.c.persona, DAYS.c.within_ms)
    sums = (func.sum(DAYS.c[name]).label(name) for name in _SUMS)
    statement = select(*keys, *sums).where(DAYS.c.revision >= 0).group_by(*keys).order_by(*keys)
    registry = CollectorRegistry()
    registry.register(_Executions(session.execute(statement)))
    return generate_latest(registry).decode()

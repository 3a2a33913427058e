"""Counters of the collector, for Prometheus.

They are in a registry of their own: Jupyter's server keeps its metrics in the process-wide one.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: The media type of `render()`: Prometheus' text exposition format.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one collector since it started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "healkit_collect_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._traces = Counter(
            "healkit_collect_traces",
            "Traces received, by what became of them.",
            ["outcome"],
            registry=self._registry,
        )
        self._faults = Counter(
            "healkit_collect_trace_errors", "Traces not stored, by reason.", ["code"], registry=self._registry
        )
        self._hidden = Counter(
            "healkit_collect_hidden",
            "What arrived unclean and was hidden.",
            ["rule"],
            registry=self._registry,
        )
        self._bytes = Counter(
            "healkit_collect_body_bytes", "Bytes of bodies, unpacked.", registry=self._registry
        )
        self._in_flight = Gauge(
            "healkit_collect_requests_in_flight", "Requests being answered.", registry=self._registry
        )
        self._seconds = Histogram(
            "healkit_collect_request_seconds",
            "Time to answer a request.",
            ["route"],
            buckets=_BUCKETS_S,
            registry=self._registry,
        )

    def started(self) -> None:
        """Count a request that has come."""
        self._in_flight.inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered, or given up."""
        self._in_flight.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def stored(
        self, size_bytes: int, outcomes: Iterable[str], codes: Iterable[str], hidden: dict[str, int]
    ) -> None:
        """Count a batch: the outcome of each trace, the codes of refusals, the hidden texts by rule."""
        self._bytes.inc(size_bytes)
        for outcome in outcomes:
            self._traces.labels(outcome).inc()
        for code in codes:
            self._faults.labels(code).inc()
        for rule, count in hidden.items():
            self._hidden.labels(rule).inc(count)

    def render(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self._registry)

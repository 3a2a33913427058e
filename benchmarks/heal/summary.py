"""Sums of rows: rates, precision, times."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from heal.measuring import Row

_RATES = ("plausible", "first_correct", "any_correct", "kept_correct")


def summary(rows: list[Row]) -> dict[str, Any]:
    """Sum up one set. Rates are over the programs whose right result can be known; precision is over every claim."""
    knowable = [row for row in rows if row.knowable]
    unknowable = [row for row in rows if not row.knowable]
    whole = {
        **rates(knowable),
        "claims": claims(rows),
        "seconds": times([row.seconds for row in rows]),
        "seconds_of_the_healed": times([row.seconds for row in rows if row.kept_correct]),
        "candidates": times([row.candidates for row in rows]),
        "questions": sum(row.questions for row in rows),
        "real_calls": sum(row.real_calls for row in rows),
        "errors": sorted({row.error for row in rows if row.error}),
    }
    if unknowable:
        whole["unknowable"] = {"programs": len(unknowable), "claims": claims(unknowable)}
    for name, key in _GROUPS.items():
        groups = sorted({str(key(row)) for row in knowable})
        if len(groups) > 1:
            whole[name] = {g: rates([row for row in knowable if str(key(row)) == g]) for g in groups}
    return whole


_GROUPS: dict[str, Callable[[Row], Any]] = {
    "by_seed": lambda row: row.seed,
    "by_kind": lambda row: row.kind.partition(":")[0],  # of `shape: mistake` the shape
    "by_how_it_shows": lambda row: row.shows,
    "by_bugs": lambda row: row.bugs,
}


def rates(rows: list[Row]) -> dict[str, Any]:
    """Count the programs, and those that were healed, in each sense of the word."""
    counts = {name: sum(getattr(row, name) for row in rows) for name in _RATES}
    return {"programs": len(rows), **counts, "rate": _share(counts["kept_correct"], len(rows))}


def claims(rows: list[Row]) -> dict[str, Any]:
    """Count the patches kept as *fixed, no regressions*, and how many of them are correct.

    memorised: those that are wrong and hold a visible example's result as a literal.
    """
    claimed = [row for row in rows if row.kept and row.verdict == "cured"]
    right = sum(row.kept_correct for row in claimed)
    memorised = sum(row.memorised and not row.kept_correct for row in claimed)
    share = _share(right, len(claimed))
    return {"cured": len(claimed), "correct": right, "precision": share, "memorised": memorised}


def times(values: Iterable[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum; empty for no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return {"median": round(statistics.median(ordered), 2), "p95": p95, "max": ordered[-1]}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None

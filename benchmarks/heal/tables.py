"""Results as Markdown tables, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_HEAD = (
    "set", "programs", "plausible", "first", "any", "kept", "claims correct", "copied", "median", "p95", "candidates",
)  # fmt: skip
_RATES = ("plausible", "first_correct", "any_correct", "kept_correct")
#: Sets that the page on evidence quotes.
_QUOTED = ("sealed", "blind", "calls", "quixbugs, half visible", "mutants")


def overview(sets: dict[str, dict[str, Any]]) -> str:
    """Return one line for each set."""
    return _table(_HEAD, (_line(name, summary) for name, summary in sets.items()))


def conditions(sets: dict[str, dict[str, Any]]) -> str:
    """Return how each set was measured; load is what else the machine had to do when it began."""
    return _table(
        ("set", "budget", "advisors", "seeds", "commit", "processors", "load", "Python"),
        (
            [
                name,
                f"{summary['budget_s']:g} s",
                ", ".join(summary["advisors"]),
                ", ".join(map(str, summary["seeds"])) or "–",
                summary["commit"],
                summary["machine"]["cpus"],
                f"{summary['machine']['load']:.1f}",
                summary["machine"]["python"],
            ]
            for name, summary in sets.items()
        ),
    )


def quoted(sets: dict[str, dict[str, Any]]) -> str:
    """Return one line for each quoted set: first patches that are right, and claims that are."""
    rows = (
        [
            name,
            summary["programs"],
            f"{summary['first_correct']} ({summary['first_correct'] / summary['programs']:.0%})",
            summary["claims"]["cured"],
            _right(summary["claims"], "{correct} ({share:.0%})"),
        ]
        for name in _QUOTED
        if (summary := sets.get(name)) is not None
    )
    return _table(("set", "programs", "first patch is right", "called *fixed*", "of these right"), rows)


def groups(summary: dict[str, Any], name: str, title: str) -> str:
    """Return one line for each group of a set, such as each kind of bug."""
    rows = (
        [group, rates["programs"], *(rates[key] for key in _RATES)] for group, rates in summary[name].items()
    )
    return _table((title, "programs", "plausible", "first", "any", "kept"), rows)


def _line(name: str, summary: dict[str, Any]) -> list[Any]:
    count = summary["programs"]
    parts = (summary[key] for key in _RATES)
    claims = summary["claims"]
    seconds = summary["seconds"]
    return [
        name,
        count,
        *(f"{part} ({part / count:.0%})" if count else "–" for part in parts),
        _right(claims, "{correct} of {cured} ({share:.0%})"),
        claims["memorised"],
        *(f"{seconds[key]:.1f} s" if seconds else "–" for key in ("median", "p95")),
        f"{summary['candidates'].get('median', 0):,.0f}",
    ]


def _right(claims: dict[str, Any], form: str) -> str:
    """Return how many claims are correct, and their share; a dash where nothing was claimed."""
    return form.format(**claims, share=claims["correct"] / claims["cured"]) if claims["cured"] else "–"


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

"""Results as Markdown tables, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_HEAD = (
    "set", "programs", "plausible", "first patch correct", "any patch correct", "kept patch correct",
    "precision of *cured*", "wrong by heart", "median", "p95", "candidates",
)  # fmt: skip
_RATES = ("plausible", "first_correct", "any_correct", "kept_correct")


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
    precision = "–" if claims["precision"] is None else f"{claims['correct']} of {claims['cured']}"
    seconds = summary["seconds"]
    return [
        name,
        count,
        *(f"{part} ({part / count:.0%})" if count else "–" for part in parts),
        f"{precision} ({claims['precision']:.0%})" if claims["cured"] else precision,
        claims["memorised"],
        *(f"{seconds[key]:.1f} s" if seconds else "–" for key in ("median", "p95")),
        f"{summary['candidates'].get('median', 0):,.0f}",
    ]


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

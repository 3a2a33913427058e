"""What decisions add to a `Healkit`.

`hk.decide`, `hk.summarize`, and their steps in the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import healkit.parts.runs  # noqa: F401 - without that part, this one is left out
from healkit.hooks import hookimpl, rows_of

if TYPE_CHECKING:
    from healkit.parts.decide.render_summaries import ShownFrameSummary, ShownTextSummary
    from healkit.parts.decide.service import DecideService
    from healkit.parts.runs.contract import RunManifest
    from healkit.parts.runs.run_audit import Tell
    from healkit.services import Services


@hookimpl
def commands() -> Mapping[str, Callable[[], Any]]:
    """`healkit decide`, `summarize` and `audit`."""
    return {
        **rows_of("healkit.parts.decide.commands", "decide", "summarize"),
        **rows_of("healkit.parts.decide.audit_commands", "audit"),
    }


@hookimpl
def mcp_tools() -> Mapping[str, Callable[[], Any]]:
    """`decide`."""
    return rows_of("healkit.parts.decide.agent_tools", "decide", table="TOOLS")


@hookimpl
def attributes() -> Mapping[str, Callable[[Services], Any]]:
    """`decisions` with its methods, and `summarize(…)`."""
    return {
        "decisions": _decisions,
        "decide": lambda services: services.decisions.decide,
        "adecide": lambda services: services.decisions.adecide,
        "summarize": _summarize,
    }


@hookimpl
def audit_steps(manifest: RunManifest) -> Tell | None:
    """Return a function that describes the events of a decision for the audit."""
    if manifest.execution_profile.name != "decide":
        return None
    from healkit.parts.decide.record import decide_steps

    return decide_steps


def _decisions(services: Services) -> DecideService:
    from healkit.parts.decide.service import DecideService

    return DecideService(services)


def _summarize(services: Services) -> Callable[..., ShownTextSummary | ShownFrameSummary]:
    def summarize(value: Any, *, top: int = 10) -> ShownTextSummary | ShownFrameSummary:
        """Summarise a text, a frame or an array, without a model; the same value always has the same summary.

        top: The maximum number of entries in each list. Values that the sanitiser hides are left out.

        Raises `UsageInvalid` for a value of another kind.

        Example:
        >>> print(hk.summarize(pd.DataFrame({"points": [70, 40, None]})))
        pandas.DataFrame: 3 × 1
          nulls      1
          column  type     nulls  distinct  min  median  max  mean  most frequent
          points  float64  1      2         40   55      70   55
        """
        from healkit.parts.decide.summaries import summarize

        return summarize(value, services.cleaner.sanitizer, top=top)

    return summarize

"""What the failure catalogue hooks into.

Facts in the worker, explanations and exports in the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from healkit.core.contracts.explanation import Explanation
from healkit.core.contracts.failure import Failure
from healkit.hooks import hookimpl


@hookimpl
def observers() -> tuple[str, ...]:
    """Facts about the live objects of a failure."""
    return ("healkit.parts.explain.facts.observers",)


@hookimpl(trylast=True)
def explain(failure: Failure, where: str, code: str, defined: Collection[str]) -> Explanation:
    """Explain any failure; after the plug-ins that know its library."""
    from healkit.parts.explain.fixes import explained  # its tables are read with the first failure

    return explained(failure, where, code, defined)


@hookimpl
def writer(form: str) -> Callable[..., Any] | None:
    """Write a failure as a notebook or as Markdown."""
    if form == "notebook":
        from healkit.parts.explain.failure_export import write_notebook  # nbformat takes a second to load

        return write_notebook
    if form == "markdown":
        from healkit.parts.explain.failure_export import markdown_of

        return markdown_of
    return None

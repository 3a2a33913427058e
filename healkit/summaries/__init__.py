"""Deterministic summaries of texts and frames.

No model and no network: the same value always has the same summary. `texts` reads texts by the patterns of `patterns`,
`ngrams` counts their words, `frames` reads frames and arrays.
"""

from __future__ import annotations

from typing import Any

from healkit.errors import UsageInvalid
from healkit.rendering.summaries import ShownFrameSummary, ShownTextSummary
from healkit.sanitizer.cleaner import Cleaner

#: Number of entries in each list, and the most that can be asked for.
TOP, TOP_MAX = 10, 1000


def summarize(value: Any, cleaner: Cleaner, *, top: int = TOP) -> ShownTextSummary | ShownFrameSummary:
    """Return the summary of a text, a frame or an array.

    top: the number of entries in each list at most. What `cleaner` hides is in none of them. Raises `UsageInvalid`
    for a value of another kind.
    """
    if not 0 <= top <= TOP_MAX:
        raise UsageInvalid(f"top is {top!r}.", hint=f"Give a number from 0 to {TOP_MAX:,}.")
    if isinstance(value, str):
        from healkit.summaries import texts

        return texts.summary_of(value, cleaner, top)
    from healkit.summaries import frames

    found = frames.summary_of(value, cleaner, top)
    if found is None:
        raise UsageInvalid(
            f"A value of type {type(value).__name__!r} is neither text nor a frame.",
            hint="Pass text, a frame, a series or an array of pandas, numpy, pyarrow or polars.",
        )
    return found

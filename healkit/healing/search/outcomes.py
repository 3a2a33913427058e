"""What the letters tell that a candidate's checks went by (`Workbench.score`); the failing checks come first."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.healing.search.ranking import Candidate


def leading(outcomes: str) -> int:
    """How many checks were passed before the first that was not."""
    return len(outcomes) - len(outcomes.lstrip("."))


def promise(outcomes: str, before: str) -> float:
    """How far a variant got: over the first failing checks, or at least to another failure."""
    return leading(outcomes) or 0.5 * (outcomes[:1] == "w" and before[:1] != "w")


def late(tried: Sequence[tuple[Candidate, str]], mended: int = 0) -> list[Candidate]:
    """What failed on time alone and passed at least so many checks before that, nearest first."""
    found = [
        pair for pair in tried if not pair[1].strip("t.-") and "t" in pair[1] and leading(pair[1]) >= mended
    ]
    found.sort(key=lambda pair: (-leading(pair[1]), -pair[0].score))
    return [candidate for candidate, _ in found]

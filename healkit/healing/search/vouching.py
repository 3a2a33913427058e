"""What the search would vouch for, of what passes every check.

Of a few thousand edits some meet two or three examples by chance. What tells them from the right one is how the edit
came about and what else passes, and where that says little the search says so: its patch is shown, not called cured.
"""

from __future__ import annotations

from healkit.healing.search.choosing import Ranked
from healkit.healing.search.sense import sense

#: Not vouched for are a kind of edit that is so rarely right, a behaviour for which less speaks, one of more than so
#: many, and literals from nowhere. (Of the likeliest patches for 127 tools, 99 were right; of the 64 that this leaves
#: to be called cured, 59.)
_RARE, _SURE, _BEHAVIOURS, _FOREIGN = 0.25, 0.85, 3, 0.9
#: Several edits have to mend so many checks each: pairs of edits are a thousand times as many as edits.
_CHECKS_AN_EDIT = 2
#: The doubt about a patch for which there was no time left.
UNCOMPARED = "Time was up before it was compared with others."
#: The doubt about one that itself leaves none.
OVERTAKEN = "A likelier patch passes too, and is not vouched for."


def doubt(code: str, one: Ranked, edits: int, mended: int) -> str:
    """Why the search would not vouch for a patch of `code`, in a sentence; empty where it does.

    edits: how many mistakes it mends. mended: how many checks failed before that pass with it.
    """
    candidate = one.patch.candidate
    if mended < _CHECKS_AN_EDIT * edits and edits > 1:
        return "It takes several edits at once, and of those some always fit a few examples by chance."
    if candidate.prior < _RARE:
        return f"What it does ({candidate.made_by[0]}) is seldom what was wrong."
    if one.share < _SURE or one.behaviours > _BEHAVIOURS:
        return "Other edits pass as well, and do something else on inputs near those of the checks."
    change = sense(code, one.patch.code)
    if change.foreign > _FOREIGN:
        return "It has a number in it that nothing in the tool explains."
    if one.unused:
        return "It never gets to code that ran before, on any check."
    if change.silent:
        return "It may end without returning anything, which the tool never did."
    return ""

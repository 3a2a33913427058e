"""Confidence in a patch that passes every check.

Of a few thousand edits some meet two or three examples by chance. The kind of edit and the other patches that pass tell
them from the right one. Where they tell little the patch gets a doubt: it is shown, but not called cured.
"""

from __future__ import annotations

from healkit.healing.advisors.search.patch_features import patch_features
from healkit.healing.advisors.search.patch_ranking import RankedPatch

#: Thresholds of doubt: the prior of a rare kind of edit, the share of evidence for its behaviour, the number of
#: behaviours, and the weight of unexplained literals. (Of the top patches for 127 tools, 99 were right; of the 64
#: without a doubt, 59.)
_RARE, _SURE, _BEHAVIOURS, _FOREIGN = 0.25, 0.85, 3, 0.9
#: With several edits, how many failing checks each has to fix: there are a thousand times as many pairs as edits.
_CHECKS_AN_EDIT = 2
#: Doubt about a patch that was not compared for lack of time.
UNCOMPARED = "Time was up before it was compared with others."
#: Doubt about a patch that is ranked below a doubted one.
OVERTAKEN = "A likelier patch passes too, and is not vouched for."


def reason_for_doubt(code: str, one: RankedPatch, edits: int, mended: int) -> str:
    """Return why the search doubts a patch of `code`, in a sentence; empty if it does not.

    edits: the number of edits in it. mended: the number of failing checks that it makes pass.
    """
    candidate = one.patch.candidate
    if mended < _CHECKS_AN_EDIT * edits and edits > 1:
        return "It takes several edits at once, and of those some always fit a few examples by chance."
    if candidate.prior < _RARE:
        return f"What it does ({candidate.made_by[0]}) is seldom what was wrong."
    if one.share < _SURE or one.behaviours > _BEHAVIOURS:
        return "Other edits pass as well, and do something else on inputs near those of the checks."
    features = patch_features(code, one.patch.code)
    if features.foreign > _FOREIGN:
        return "It has a number in it that nothing in the tool explains."
    if one.unused:
        return "It never gets to code that ran before, on any check."
    if features.silent:
        return "It may end without returning anything, which the tool never did."
    return ""

"""Confidence in a patch that passes every check.

Of a few thousand edits some meet two or three examples by chance. The kind of edit and the other patches that pass tell
them from the right one. Where they tell little the patch gets a doubt: it is shown, but not called cured.
"""

from __future__ import annotations

from healkit.healing.advisors.search.patch_features import patch_features
from healkit.healing.advisors.search.patch_ranking import RankedPatch

#: Thresholds of doubt: the prior of a rare kind of edit, the share of evidence for its behaviour, the number of
#: behaviours, and the weight of unexplained literals.
_RARE, _SURE, _BEHAVIOURS, _FOREIGN = 0.25, 0.85, 3, 0.9
#: Fixed checks that make up for a rare kind of edit, and for a smaller share of the evidence.
_MANY, _SURE_OF_MANY = 3, 0.75
#: Least share of the tool's other results that a patch keeps if one failing check speaks for it. (Of 219 patches that
#: the search vouched for, in five sets, 98 of the 107 with one failing check were right, and 107 of the 112 with more.
#: With the doubts about the former, the same sets have 3 wrong ones in 212.)
_KEPT_LEAST = 0.5
#: An operator that puts any short text where another was.
_SEPARATOR = "another separator"
#: With several edits, how many failing checks each has to fix: there are a thousand times as many pairs as edits.
_CHECKS_AN_EDIT = 2
#: Doubt about a patch that fixes a part of the failing checks.
PARTIAL = "It passes only some of the checks."
#: Doubt about a patch that is ranked below a doubted one.
OVERTAKEN = "A more likely patch also passes, and the search doubts that one."


def reason_for_doubt(code: str, one: RankedPatch, edits: int, fixed: int, *, loudly: bool = False) -> str:
    """Return why the search doubts a patch of `code`, in a sentence; empty if it does not.

    edits: the number of edits in it. fixed: how many failing checks it makes pass (`Baseline.evidence`). loudly: every
    failure is an exception.
    """
    candidate = one.patch.candidate
    if fixed < _CHECKS_AN_EDIT * edits and edits > 1:
        return "It combines several edits; some such combinations fit a few examples by chance."
    if candidate.prior < _RARE and (fixed < _MANY or candidate.guard or one.behaviours > 1):
        return f"This kind of edit ({candidate.made_by[0]}) is rarely the right fix."
    if one.share < (_SURE if fixed <= _MANY else _SURE_OF_MANY) or one.behaviours > _BEHAVIOURS:
        return "Other edits pass too, but behave differently on similar inputs."
    features = patch_features(code, one.patch.code)
    if features.foreign > _FOREIGN:
        return "It contains a number that nothing in the tool explains."
    if one.unused:
        return "Code that ran before is not reached on any check."
    if features.silent:
        return "It may end without returning a value; the tool always returned one."
    if features.idle:
        return "A part of it has no effect."
    if candidate.made_by[-1] == _SEPARATOR and one.kept < 1.0:
        return "It contains a string that nothing in the tool explains."
    return _doubt_by_one(one, loudly, features.uneven) if fixed == 1 else ""


def _doubt_by_one(one: RankedPatch, loudly: bool, uneven: int) -> str:
    """Return a doubt about a patch for which a single failing check speaks.

    A check that only one in a thousand edits meets is met by some edit in every second program. What else the patch
    changes is the evidence against it.
    """
    if loudly and one.kept < 1.0:
        return "It changes results for other inputs, and no example had a wrong result."
    if one.kept < _KEPT_LEAST:
        return (
            "It changes most results for inputs near those of the checks, and only one check speaks for it."
        )
    if uneven:
        return "It changes one of several similar places, and only one check speaks for it."
    return ""

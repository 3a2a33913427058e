"""What the search would call cured, of what passes every check."""

from __future__ import annotations

import pytest

from healkit.contracts.healing import difference
from healkit.healing.search.choosing import Plausible, Ranked
from healkit.healing.search.ranking import Candidate
from healkit.healing.search.vouching import doubt

CODE = "def f(n):\n    while True:\n        if n > 3:\n            return n + 1\n        n += 1\n"


def ranked(code: str, prior: float = 0.8, share: float = 1.0, behaviours: int = 1, unused: int = 0) -> Ranked:
    candidate = Candidate((difference(CODE, code),), prior, prior, ("another comparison",))
    return Ranked(Plausible(code, candidate), 1.0, 1.0, share, behaviours, unused)


def test_a_likely_edit_that_all_others_agree_with_is_vouched_for() -> None:
    assert doubt(CODE, ranked(CODE.replace("n > 3", "n >= 3")), edits=1, mended=1) == ""


@pytest.mark.parametrize(
    ("one", "edits", "said"),
    [
        (ranked(CODE.replace("n > 3", "n >= 3")), 2, "several edits at once"),
        (ranked(CODE.replace("n > 3", "n >= 3"), prior=0.1), 1, "is seldom what was wrong"),
        (ranked(CODE.replace("n > 3", "n >= 3"), share=0.5), 1, "do something else"),
        (ranked(CODE.replace("n > 3", "n >= 3"), behaviours=9), 1, "do something else"),
        (ranked(CODE.replace("n > 3", "n > 77")), 1, "a number in it"),
        (ranked(CODE.replace("while True", "while n < 9")), 1, "a number in it"),
        (ranked(CODE.replace("n > 3", "n >= 3"), unused=1), 1, "never gets to code that ran before"),
        (ranked(CODE.replace("while True", "while n")), 1, "may end without returning anything"),
    ],
)
def test_each_doubt_is_said(one: Ranked, edits: int, said: str) -> None:
    assert said in doubt(CODE, one, edits=edits, mended=1)

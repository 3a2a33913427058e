"""Doubts of the search about patches that pass every check."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Sequence

import pytest

from healkit import Healkit
from healkit.core.contracts.patches import Check, difference
from healkit.core.contracts.vault import VaultEntry
from healkit.core.store.entries import code_hash
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.advisors.search.edit_space import Candidate
from healkit.parts.heal.advisors.search.patch_features import patch_features
from healkit.parts.heal.advisors.search.patch_ranking import (
    OVERTAKEN,
    TWIN,
    PlausiblePatch,
    RankedPatch,
    reason_for_doubt,
)
from healkit.parts.heal.advisors.search.strategy import start_search
from healkit.parts.heal.records import Attempt, Patch, Verdict
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials

CODE = "def f(n):\n    while True:\n        if n > 3:\n            return n + 1\n        n += 1\n"


def rank_patches(
    code: str, prior: float = 0.8, share: float = 1.0, behaviours: int = 1, unused: int = 0
) -> RankedPatch:
    candidate = Candidate((difference(CODE, code),), prior, prior, ("another comparison",))
    return RankedPatch(PlausiblePatch(code, candidate), 1.0, 1.0, share, behaviours, unused)


@pytest.mark.requirement("HEAL-3")
def test_a_likely_edit_without_rivals_has_no_doubt() -> None:
    assert reason_for_doubt(CODE, rank_patches(CODE.replace("n > 3", "n >= 3")), edits=1, fixed=1) == ""


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("one", "edits", "said"),
    [
        (rank_patches(CODE.replace("n > 3", "n >= 3")), 2, "several edits"),
        (rank_patches(CODE.replace("n > 3", "n >= 3"), prior=0.1), 1, "is rarely the right fix"),
        (rank_patches(CODE.replace("n > 3", "n >= 3"), share=0.5), 1, "behave differently"),
        (rank_patches(CODE.replace("n > 3", "n >= 3"), behaviours=9), 1, "behave differently"),
        (rank_patches(CODE.replace("n > 3", "n > 77")), 1, "contains a number"),
        (rank_patches(CODE.replace("while True", "while n < 9")), 1, "contains a number"),
        (rank_patches(CODE.replace("n > 3", "n >= 3"), unused=1), 1, "does not run in any check"),
        (rank_patches(CODE.replace("while True", "while n")), 1, "may end without a return value"),
    ],
)
def test_each_doubt_has_its_sentence(one: RankedPatch, edits: int, said: str) -> None:
    """H10: two edits were wrong claims most often; they and a rare kind of edit are doubted."""
    assert said in reason_for_doubt(CODE, one, edits=edits, fixed=1)


BOARD = "def f(x, y):\n    return 0 < x <= 8 and 0 < y <= 8\n"


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("code", "after", "kept", "loudly", "said"),
    [
        (CODE, CODE.replace("n > 3", "n >= 3"), 0.9, True, "no example had a wrong result"),
        (CODE, CODE.replace("n > 3", "n >= 3"), 0.4, False, "changes most results"),
    ],
)
def test_one_failing_check_is_not_enough_against_evidence(
    code: str, after: str, kept: float, loudly: bool, said: str
) -> None:
    """H10: of the claims with one failing example 91 % were right, of those with more 96 %."""
    one = dataclasses.replace(rank_patches(after), kept=kept)
    assert said in reason_for_doubt(code, one, edits=1, fixed=1, loudly=loudly)
    assert reason_for_doubt(code, one, edits=1, fixed=2, loudly=loudly) == ""


@pytest.mark.requirement("HEAL-3")
def test_one_failing_example_alone_is_not_enough() -> None:
    """E4: of twelve claims with one failing example four were wrong, of 73 others two."""
    one = rank_patches(CODE.replace("n > 3", "n >= 3"))
    two = dataclasses.replace(one, behaviours=2)
    removed = rank_patches(CODE.replace("n > 3", "n"))
    twin = rank_patches(BOARD.replace("0 < x", "0 <= x"))

    def doubt(of: RankedPatch, fixed: int, code: str = CODE, **about: bool) -> str:
        return reason_for_doubt(code, of, edits=1, fixed=fixed, **about)

    assert (
        doubt(one, 1, alone=True)
        == "Only one failing example supports it, and no other example says what must stay."
    )
    assert "behave differently" in doubt(two, 1)
    assert "only removes the code that raised" in doubt(removed, 1, loudly=True)
    assert doubt(twin, 3, BOARD) == TWIN
    assert [
        doubt(one, 1),
        doubt(one, 2, alone=True),
        doubt(two, 2),
        doubt(removed, 1),
        doubt(twin, 4, BOARD),
    ] == [""] * 5


@pytest.mark.requirement("HEAL-3")
def test_a_patch_with_a_part_that_does_nothing_is_doubted() -> None:
    """H10: a loop that is left in its first round gives a constant or degenerate result."""
    code = "def f(a):\n    for x in a:\n        x += 1\n    return 0\n"
    after = code.replace("x += 1", "return x")
    assert reason_for_doubt(code, rank_patches(after), edits=1, fixed=2) == "Part of it has no effect."


@pytest.mark.requirement("HEAL-3")
def test_many_failing_checks_speak_for_a_rare_kind_of_edit() -> None:
    """H10: the evidence of three failing checks outweighs the rarity of the edit, unless it is a guard."""
    after = CODE.replace("n > 3", "n >= 3")
    assert reason_for_doubt(CODE, rank_patches(after, prior=0.1), edits=1, fixed=3) == ""
    assert "rarely" in reason_for_doubt(CODE, rank_patches(after, prior=0.1), edits=1, fixed=2)
    assert reason_for_doubt(CODE, rank_patches(after, share=0.8), edits=1, fixed=4) == ""


def proposed(
    healkit: Healkit,
    order: list[RankedPatch],
    refused: Sequence[str] = (),
    verdict_else: Verdict = "cured",
    goes_on: bool = False,
) -> list[Patch]:
    """Return the patches that are proposed of these, if validation refuses some codes.

    goes_on: whether the search is to go on after them.
    """
    entry = VaultEntry("f", "default", 1, CODE, code_hash(CODE))
    known = {3: 4, 9: 10}  # the second passes as it is
    checks = tuple(Check(origin="declared", arguments={"n": n}, known=True, expected=known[n]) for n in known)
    bench = Bench(Trials(healkit.recorder, healkit.config), entry.ref, 60.0)
    search = start_search(Case(entry, None, checks), bench)
    assert search is not None
    search._evaluator.found = [one.patch for one in order]
    patches, attempt = list[Patch](), None
    ended: list[bool] = []

    def whole() -> Generator[Patch, Attempt | None, None]:
        ended.append((yield from search._proposed(order)))

    proposals = whole()
    with contextlib.suppress(StopIteration):
        while True:
            patch = proposals.send(attempt)
            patches.append(patch)
            verdict: Verdict = "not_cured" if patch.code in refused else verdict_else
            attempt = Attempt(number=len(patches), patch=patch, diff="", verdict=verdict)
    assert (search._evaluator.found, ended) == ([], [goes_on])
    return patches


@pytest.mark.requirement("HEAL-3")
def test_a_patch_below_a_doubted_one_is_doubted_too(healkit: Healkit) -> None:
    order = [
        rank_patches(CODE.replace("n > 3", "n > 2"), prior=0.1),
        rank_patches(CODE.replace("n > 3", "n >= 3")),
    ]
    doubts = [patch.doubt for patch in proposed(healkit, order)]
    assert "is rarely the right fix" in doubts[0]
    assert doubts[1] == OVERTAKEN


@pytest.mark.requirement("HEAL-2", "HEAL-3")
def test_the_search_goes_on_where_everything_that_passes_only_hides_the_error(healkit: Healkit) -> None:
    """E9: it ended at the first patch that passed, budget left."""
    order = [rank_patches(CODE.replace("n > 3", "n > 2"))]
    proposed(healkit, order, goes_on=True, verdict_else="silenced")
    proposed(healkit, order, goes_on=False, verdict_else="unproven")


@pytest.mark.requirement("HEAL-2")
def test_two_patches_of_one_behaviour_are_proposed(healkit: Healkit) -> None:
    codes = [CODE.replace("n > 3", f"n >= {bound}") for bound in (3, 4, 5)]
    same = [dataclasses.replace(rank_patches(code), does=(".w", "..")) for code in codes]
    other = dataclasses.replace(rank_patches(CODE.replace("n > 3", "n < 3")), does=("ww", "w."))
    shown = [patch.code for patch in proposed(healkit, [*same, other])]
    assert shown == [*codes[:2], other.patch.code]
    # One that does not stand makes room for another that does as it did.
    shown = [patch.code for patch in proposed(healkit, [*same, other], refused=codes[:1])]
    assert shown == [*codes, other.patch.code]


BEFORE = "def mean(values, size):\n    total = 0\n    for value in values:\n        total += value\n    return total // size\n"
IDLE = [
    "total // total", "total % 1", "total + 0", "3 - 1", "total if size else total", "min(total, total)", "int()",
    "total and total", "total == total", "len(values) >= 0", "total % size < 0", "1 if True else 2", "(total, total)",
    "size < 3 and size > 12", "size < 3 and size != 12", "size < total and size < 2", "size < 3 and size < 12",
    "size > 3 or size < 12", "size != 3 or size != 4", "size == 3 and size == 4", "size < 3 and not size > 12",
]  # fmt: skip
BUSY = [
    "total // (size - 1)", "total * 2", "len(values) > 0", "total % size == 0", "-total", "size > 3 and size < 12",
    "size < 3 or size > 12", "size == 3 or size == 4", "size != 3 and size != 4", "size < 3 or total < 3",
    "size > 3 and not size > 12",
]  # fmt: skip


@pytest.mark.parametrize(("text", "idle"), [*((text, 1) for text in IDLE), *((text, 0) for text in BUSY)])
def test_a_constant_expression_is_idle_and_one_with_an_effect_is_not(text: str, idle: int) -> None:
    assert patch_features(BEFORE, BEFORE.replace("total // size", text)).idle == idle

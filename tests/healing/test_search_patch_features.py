"""Features of a patch, by its text alone."""

from __future__ import annotations

import pytest

from healkit.healing.advisors.search.patch_ranking import PatchFeatures, patch_features

BEFORE = "def mean(values, size):\n    total = 0\n    for value in values:\n        total += value\n    return total // size\n"


def changed(old: str, new: str) -> PatchFeatures:
    assert old in BEFORE
    return patch_features(BEFORE, BEFORE.replace(old, new))


def test_changes_are_counted_in_tokens() -> None:
    assert changed("//", "/") == PatchFeatures(removed=1, added=1)
    assert changed("total // size", "total // (size + 1)") == PatchFeatures(added=4)
    assert changed("    total = 0\n", "") == PatchFeatures(removed=4)


def test_moved_tokens_are_counted_separately() -> None:
    assert changed("total // size", "size // total") == PatchFeatures(moved=2)
    assert patch_features("a = 1\nb = 2\n", "b = 2\na = 1\n") == PatchFeatures(moved=4)


def test_layout_and_comments_are_no_change() -> None:
    assert changed("total = 0", "total  =  0  # yet") == PatchFeatures()


def test_an_unread_variable_is_counted() -> None:
    assert changed("total // size", "total").unread == 1
    assert changed("total += value", "total += size").unread == 1
    assert changed("total // size", "size // total").unread == 0


def test_an_unexplained_number_is_odder_than_a_usual_or_adjacent_one() -> None:
    assert changed("total = 0", "total = 17").foreign == 1.0
    assert changed("total = 0", "total = 2").foreign == 0.0
    assert patch_features("x = 60\n", "x = 61\n").foreign == 0.4
    assert patch_features("x = 'a'\n", "x = 'b'\n").foreign == 0.5


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
    assert changed("total // size", text).idle == idle


def test_a_loop_that_changes_its_own_list_is_idle_but_not_over_a_copy() -> None:
    over, copied = "for x in a:\n    a.remove(x)\n", "for x in list(a):\n    a.remove(x)\n"
    assert patch_features("for x in a:\n    b.remove(x)\n", over).idle == 1
    assert patch_features(over, copied) == PatchFeatures(added=3, fixed=1)


def test_removing_an_idle_expression_is_counted() -> None:
    assert patch_features("x = a < 3 and a > 9\n", "x = a < 3 or a > 9\n").fixed == 1
    assert patch_features("x = a < 3 and a > 9\n", "x = a < 3 and a < 9\n").fixed == 0


def test_expressions_that_were_idle_before_do_not_count() -> None:
    assert patch_features("x = a - a\ny = 1\n", "x = a - a\ny = 2\n").idle == 0


def test_statements_without_effect_and_unreachable_ones_are_idle() -> None:
    assert changed("total += value", "total += 0").idle == 1
    assert changed("total += value", "total = total").idle == 1
    assert changed("    return total // size", "    return 0\n    return total // size").idle == 1


def test_a_lost_recursion_counts_as_unread() -> None:
    assert patch_features("def f(n):\n    return f(n - 1)\n", "def f(n):\n    return n - 1\n").unread == 1


def test_a_function_that_may_now_end_without_a_value_is_counted() -> None:
    before = "def f(n):\n    while True:\n        if n > 9:\n            return n\n        n += 1\n"
    assert patch_features(before, before.replace("while True", "while n")).silent == 1
    assert patch_features(before, before.replace("n += 1", "n += 2")).silent == 0
    both = "def f(n):\n    if n:\n        return 1\n    else:\n        return 2\n"
    assert patch_features(both, both.replace("        return 2", "        n = 2")).silent == 1
    assert patch_features(both, both.replace("return 2", "raise ValueError(n)")).silent == 0


def test_code_that_does_not_parse_has_no_features() -> None:
    assert patch_features("def f(:\n", "x = 1\n") == PatchFeatures()

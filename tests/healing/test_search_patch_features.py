"""What is said of a change by its text alone."""

from __future__ import annotations

import pytest

from healkit.healing.advisors.search.patch_features import PatchFeatures, patch_features

BEFORE = "def mean(values, size):\n    total = 0\n    for value in values:\n        total += value\n    return total // size\n"


def changed(old: str, new: str) -> PatchFeatures:
    assert old in BEFORE
    return patch_features(BEFORE, BEFORE.replace(old, new))


def test_a_small_change_is_counted_in_tokens_wherever_it_stands() -> None:
    assert changed("//", "/") == PatchFeatures(removed=1, added=1)
    assert changed("total // size", "total // (size + 1)") == PatchFeatures(added=4)
    assert changed("    total = 0\n", "") == PatchFeatures(removed=4)


def test_what_only_goes_elsewhere_is_counted_apart() -> None:
    assert changed("total // size", "size // total") == PatchFeatures(moved=2)
    assert patch_features("a = 1\nb = 2\n", "b = 2\na = 1\n") == PatchFeatures(moved=4)


def test_a_layout_and_a_comment_are_no_change() -> None:
    assert changed("total = 0", "total  =  0  # yet") == PatchFeatures()


def test_a_variable_that_is_no_longer_read_is_told() -> None:
    assert changed("total // size", "total").unread == 1
    assert changed("total += value", "total += size").unread == 1
    assert changed("total // size", "size // total").unread == 0


def test_a_number_from_nowhere_is_odd_and_a_usual_one_or_a_neighbour_is_not_or_less() -> None:
    assert changed("total = 0", "total = 17").foreign == 1.0
    assert changed("total = 0", "total = 2").foreign == 0.0
    assert patch_features("x = 60\n", "x = 61\n").foreign == 0.4
    assert patch_features("x = 'a'\n", "x = 'b'\n").foreign == 0.5


@pytest.mark.parametrize(
    "idle",
    [
        "total // total", "total % 1", "total + 0", "3 - 1", "total if size else total", "min(total, total)", "int()",
        "total and total", "total == total", "len(values) >= 0", "total % size < 0", "1 if True else 2", "(total, total)",
        "size < 3 and size > 12", "size < 3 and size != 12", "size < total and size < 2", "size < 3 and size < 12", "size > 3 or size < 12", "size != 3 or size != 4",
        "size == 3 and size == 4", "size < 3 and not size > 12",
    ],
)  # fmt: skip
def test_what_always_gives_the_same_is_idle(idle: str) -> None:
    assert changed("total // size", idle).idle == 1


@pytest.mark.parametrize(
    "busy",
    [
        "total // (size - 1)",
        "total * 2",
        "len(values) > 0",
        "total % size == 0",
        "-total",
        "size > 3 and size < 12",
        "size < 3 or size > 12",
        "size == 3 or size == 4",
        "size != 3 and size != 4",
        "size < 3 or total < 3",
        "size > 3 and not size > 12",
    ],
)
def test_what_does_something_is_not_idle(busy: str) -> None:
    assert changed("total // size", busy).idle == 0


def test_a_loop_that_changes_what_it_goes_over_is_odd_and_one_over_a_copy_is_not() -> None:
    over, copied = "for x in a:\n    a.remove(x)\n", "for x in list(a):\n    a.remove(x)\n"
    assert patch_features("for x in a:\n    b.remove(x)\n", over).idle == 1
    assert patch_features(over, copied) == PatchFeatures(added=3, mended=1)


def test_what_was_idle_before_and_is_no_longer_speaks_for_a_change() -> None:
    assert patch_features("x = a < 3 and a > 9\n", "x = a < 3 or a > 9\n").mended == 1
    assert patch_features("x = a < 3 and a > 9\n", "x = a < 3 and a < 9\n").mended == 0


def test_what_was_idle_before_is_not_held_against_a_change() -> None:
    assert patch_features("x = a - a\ny = 1\n", "x = a - a\ny = 2\n").idle == 0


def test_statements_that_do_nothing_or_are_never_reached_are_idle() -> None:
    assert changed("total += value", "total += 0").idle == 1
    assert changed("total += value", "total = total").idle == 1
    assert changed("    return total // size", "    return 0\n    return total // size").idle == 1


def test_a_function_that_no_longer_calls_itself_has_lost_something() -> None:
    assert patch_features("def f(n):\n    return f(n - 1)\n", "def f(n):\n    return n - 1\n").unread == 1


def test_a_function_that_returns_something_and_may_now_just_end_is_told() -> None:
    before = "def f(n):\n    while True:\n        if n > 9:\n            return n\n        n += 1\n"
    assert patch_features(before, before.replace("while True", "while n")).silent == 1
    assert patch_features(before, before.replace("n += 1", "n += 2")).silent == 0
    both = "def f(n):\n    if n:\n        return 1\n    else:\n        return 2\n"
    assert patch_features(both, both.replace("        return 2", "        n = 2")).silent == 1
    assert patch_features(both, both.replace("return 2", "raise ValueError(n)")).silent == 0


def test_of_what_does_not_parse_nothing_is_said() -> None:
    assert patch_features("def f(:\n", "x = 1\n") == PatchFeatures()

"""Names of a patch's verdict."""

from __future__ import annotations

from typing import Any

import pytest
from healing_samples import PASSED, RAISED, verdict_on
from healing_samples import WRONG_RESULT as WRONG

from healkit.core.contracts.patches import Check, CheckResult, same_value
from healkit.parts.heal.checks import why_not
from healkit.parts.heal.records import Patch

BEFORE = "def f(x):\n    return 1 / x\n"
AFTER = "def f(x):\n    return 1 / (x + 1)\n"
DECLARED = Check(origin="declared", arguments={"x": 0}, known=True, expected=1.0)
FAILING = Check(origin="failing", arguments={"x": 0})
PASSING = Check(origin="passing", arguments={"x": 3}, known=True, expected=0.25)


ANSWERED = Check(origin="answered", arguments={"x": 1}, known=True, expected=0.5)


def patch(code: str = AFTER, *, guard: bool = False, doubt: str = "") -> Patch:
    return Patch(code=code, advisor="rules", author="rule", reason="", guard=guard, doubt=doubt)


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("checks", "base", "results", "given", "verdict"),
    [
        ([DECLARED], [RAISED], [PASSED], patch(), "cured"),
        ([DECLARED, PASSING], [RAISED, PASSED], [PASSED, PASSED], patch(), "cured"),
        ([DECLARED, PASSING], [RAISED, PASSED], [PASSED, WRONG], patch(), "not_cured"),
        ([FAILING, PASSING], [RAISED, PASSED], [PASSED, PASSED], patch(), "unproven"),
        # An example that the broken code passes too says nothing about what was wrong.
        ([FAILING, DECLARED], [RAISED, PASSED], [PASSED, PASSED], patch(), "unproven"),
        ([FAILING], [RAISED], [PASSED], patch(guard=True), "silenced"),
        ([FAILING], [RAISED], [RAISED], patch(guard=True), "not_cured"),
        # A patch that its own advisor doubts needs the answer of a person.
        ([DECLARED], [RAISED], [PASSED], patch(doubt="Chance."), "unproven"),
        ([DECLARED, ANSWERED], [RAISED, WRONG], [PASSED, PASSED], patch(doubt="Chance."), "cured"),
        # H10: one answer that the broken code meets too lifted every doubt; a second one, or one that it fails, does.
        ([DECLARED, ANSWERED], [RAISED, PASSED], [PASSED, PASSED], patch(doubt="Chance."), "unproven"),
        (
            [DECLARED, ANSWERED, ANSWERED],
            [RAISED, PASSED, PASSED],
            [PASSED, PASSED, PASSED],
            patch(doubt="Chance."),
            "cured",
        ),
        # Where an example demands the guarded value, the guard is the cure.
        ([DECLARED], [RAISED], [PASSED], patch(guard=True), "cured"),
    ],
)
def test_the_verdict_follows_from_the_checks(
    checks: list[Check], base: list[CheckResult], results: list[CheckResult], given: Patch, verdict: str
) -> None:
    assert verdict_on(BEFORE, given, checks, base, results) == verdict


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("after", "hides"),
    [
        (
            "def f(x):\n    try:\n        return 1 / x\n    except ZeroDivisionError:\n        return 0\n",
            True,
        ),
        ("def f(x):\n    if not x:\n        return None\n    return 1 / x\n", True),
        ("def f(x):\n    if x == 0:\n        return []\n    return 1 / x\n", True),
        (
            "import contextlib\ndef f(x):\n    with contextlib.suppress(Exception):\n        return 1 / x\n",
            True,
        ),
        ("def f(x):\n    return 1 / (x or 1)\n", True),
        ("def f(x):\n    if x == 0:\n        return x + 1\n    return 1 / x\n", False),
        ("def f(x):\n    return 1 /\n", False),
    ],
)
def test_a_silencing_patch_is_recognised(after: str, hides: bool) -> None:
    expected = "silenced" if hides else "unproven"
    assert verdict_on(BEFORE, patch(after), [FAILING], [RAISED], [PASSED]) == expected


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("after", "expected", "copied"),
    [
        ("def f(x):\n    if x == 0:\n        return 'Ann'\n    return 1 / x\n", "Ann", True),
        ("def f(x):\n    return 1 / x if x else [3, 5]\n", [3, 5], True),
        ("def f(x):\n    if x == 0:\n        return (3, 5)\n    return 1 / x\n", [3, 5], True),
        ("def f(x):\n    if x == 0:\n        return 42\n    return 1 / x\n", 42, True),
        ("def f(x):\n    return 1 / x if x else 0.0\n", 0.0, False),
        ("def f(x):\n    if not x:\n        return []\n    return 1 / x\n", [], False),
        ("def f(x):\n    return 'An' + 'n' if x == 0 else 1 / x\n", "Ann", False),
        ("def f(x):\n    limit = g(42)\n    return limit\n", 42, False),
        ("def f(x):\n    if x == 0:\n        return 8.0\n    return 1 / x\n", 8.0, True),
        ("def f(x):\n    return 1 / x if x else 0.25\n", 0.25, True),
        ("def f(x):\n    if x == 0:\n        return 1\n    return 1 / x\n", 1, False),
        ("def f(x):\n    return 2\n", 2, False),
    ],
)
def test_a_copied_answer_does_not_cure(after: str, expected: object, copied: bool) -> None:
    check = Check(origin="declared", arguments={"x": 0}, known=True, expected=expected)
    assert verdict_on(BEFORE, patch(after), [check], [RAISED], [PASSED]) == (
        "silenced" if copied else "cured"
    )


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("inputs", "after", "verdict"),
    [
        ([5], "def f(x):\n    try:\n        return 1 / x\n    except TypeError:\n        return 1\n", "silenced"),
        ([0], "def f(x):\n    try:\n        return 1 / x\n    except TypeError:\n        y = 1\n    return y\n", "silenced"),
        ([5], "def f(x):\n    if x == 5:\n        return 1\n    return 1 / x\n", "silenced"),
        ([5], "def f(x):\n    return 1 if x > 3 else 1 / x\n", "silenced"),
        ([5], "def f(x):\n    return 1 / x if x is None else 1\n", "silenced"),
        ([5], "def f(x):\n    y = g(x)\n    if y is None:\n        return 1\n    return 1 / y\n", "cured"),
        ([5], "def f(x):\n    y = g(x)\n    return 1 / y if y else 1\n", "cured"),
        # Two examples ask for it; so does one whose input is a special case.
        ([5, 6], "def f(x):\n    try:\n        return 1 / x\n    except TypeError:\n        return 1\n", "cured"),
        ([[]], "def f(x):\n    return 1 if not x else 1 / x\n", "cured"),
        ([-2], "def f(x):\n    if x < 0:\n        return 1\n    return 1 / x\n", "cured"),
        ([5], "def f(x):\n    try:\n        return 1 / x\n    except TypeError:\n        return x - 4\n", "cured"),
    ],
)  # fmt: skip
def test_a_constant_from_a_handler_or_a_guard_only_hides_the_error(
    inputs: list[Any], after: str, verdict: str
) -> None:
    """E12: `except TypeError: return 1` was called unverified, as 1 is a constant that much code returns."""
    checks = [Check(origin="declared", arguments={"x": one}, known=True, expected=1) for one in inputs]
    assert verdict_on(BEFORE, patch(after), checks, [RAISED] * len(inputs), [PASSED] * len(inputs)) == verdict


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("before", "after", "said", "value", "verdict"),
    [
        ("g(x, dtype=np.float)", "g(x)", "AttributeError: module 'np' has no attribute 'float'", 3.0, "unproven"),
        ("sorted(x, reversed=True)", "sorted(x)", "TypeError: got an unexpected keyword argument 'reversed'", 3.0, "unproven"),
        ("h(g(x, nme))", "h(g(x))", "NameError: name 'nme' is not defined", 3.0, "unproven"),
        ("g(x, 1)", "g(x)", "TypeError: g() takes 1 positional argument but 2 were given", 3.0, "cured"),
        ("g(x, dtype=np.float)", "g(x, dtype=float)", "AttributeError: module 'np' has no attribute 'float'", 3.0, "cured"),
        ("g(y)", "g(x)", "NameError: name 'y' is not defined", 3, "unproven"),
        ("g(y)", "g(x)", "NameError: name 'y' is not defined", [3.0, 2], "unproven"),
    ],
)  # fmt: skip
def test_a_removed_argument_or_another_type_does_not_prove_a_fix(
    before: str, after: str, said: str, value: object, verdict: str
) -> None:
    """E14: the search deleted `dtype=np.float`, and got the int 3 for the example's 3.0."""
    expected = [3.0, 2.0] if isinstance(value, list) else 3.0
    check = Check(origin="declared", arguments={"x": [1]}, known=True, expected=expected)
    codes = [f"def f(x):\n    return {one}\n" for one in (before, after)]
    base, result = CheckResult(outcome="raised", failure=said), CheckResult(outcome="passed", value=value)
    assert verdict_on(codes[0], patch(codes[1]), [check], [base], [result]) == verdict


@pytest.mark.parametrize(
    ("after", "idle"),
    [
        ("def f(x):\n    return 0 if x else 0\n", True),
        ("def f(x):\n    if x:\n        return x\n    return x\n", True),
        ("def f(x):\n    if x:\n        x = 1\n    else:\n        x = 1\n    return x\n", True),
        ("def f(x):\n    return 0\n    return 1 / x\n", True),
        ("def f(x):\n    for y in x:\n        break\n        x = y\n    return x\n", True),
        ("def f(x):\n    if x:\n        return 0\n    return x\n", False),
        ("def f(x):\n    if x:\n        raise ValueError(x)\n    return x\n", False),
    ],
)
def test_a_patch_that_makes_code_idle_only_silences(after: str, idle: bool) -> None:
    """H3: the same on both sides of a condition, or statements that are never reached, only hide the failure."""
    assert verdict_on(BEFORE, patch(after), [DECLARED], [RAISED], [PASSED]) == (
        "silenced" if idle else "cured"
    )
    assert verdict_on(after, patch(BEFORE), [DECLARED], [RAISED], [PASSED]) == "cured"


def test_the_reason_names_the_input_and_its_result() -> None:
    wrong = CheckResult(outcome="wrong", value=0.5)
    assert (
        why_not([DECLARED, PASSING], [PASSED, wrong])
        == "the recorded run (x=3): gives 0.5, but 0.25 is right"
    )
    raised = CheckResult(outcome="raised", failure="KeyError: 'a'")
    assert why_not([FAILING], [raised]) == "the failing input (x=0): raises KeyError: 'a'"
    assert why_not([DECLARED], [PASSED]) == ""
    assert "does not end in time" in why_not([DECLARED], [CheckResult(outcome="timeout")])
    called = Check(origin="declared", call="f(1) + f(2)", known=True, raises="ValueError")
    assert why_not([called], [wrong]) == "the example (f(1) + f(2)): gives 0.5, but ValueError is right"


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (1, 1.0, True), (0.1 + 0.2, 0.3, True), (1, True, False), (True, True, True), (10**20, 10**20 + 1, False),
        ([1, {"a": 2.0}], [1, {"a": 2}], True), ({"a": 1}, {"a": 1, "b": 2}, False), ("1", 1, False),
        (None, None, True), (None, 0, False), ([], {}, False), (1.0, 1.1, False), (0.0, 1e-17, True), (0.0, 1e-6, False), (float("inf"), float("inf"), True),
    ],
)  # fmt: skip
def test_values_are_compared_as_a_person_would(expected: object, found: object, same: bool) -> None:
    assert same_value(expected, found) is same

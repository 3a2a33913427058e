"""Exceptions that are hard to read, and linked ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from healkit import Execution

Failed = Callable[..., Execution]

DEEP = "import sys\ndef deep():\n    sys.setrecursionlimit({limit})\n    def f(k):\n        return f(k + 1) + 1\n    return f(0)"
GROUP = """
def gather():
    errors = []
    for value in ["a", None, {}]:
        try:
            int(value) if value == "a" else value.upper() if value is None else value["k"]
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup("many", errors)
"""
CHAIN = """
def load(d):
    try:
        return d["price"]
    except KeyError as error:
        raise RuntimeError("cannot load") from error

def chain():
    return load({"prize": 1})
"""


@pytest.mark.parametrize("limit", [10**5, 10**6])
def test_a_recursion_with_a_high_limit_has_its_type_line_and_frames(failed: Failed, limit: int) -> None:
    execution = failed(DEEP.format(limit=limit), "deep")
    failure = execution.failure
    assert failure is not None
    assert failure.ename in {"RecursionError", "MemoryError"}
    assert "while it was read" not in failure.evalue
    assert (failure.tool_frame.lineno if failure.tool_frame else 0) == 5
    assert 100 < len(failure.frames) <= 200
    assert failure.frames[0].name == "deep"
    assert "line 5" in execution.to_text()


def test_a_recursion_in_c_code_that_crashes_is_told_as_a_recursion(failed: Failed) -> None:
    code = "import sys\ndef deep():\n    sys.setrecursionlimit(10**8)\n    class A:\n        def __repr__(self): return repr(self)\n    return repr(A())"
    execution = failed(code, "deep")
    assert execution.failure is not None
    assert execution.failure.ename == "RecursionError"
    assert "sys.setrecursionlimit" in str(execution.explain())


@pytest.mark.parametrize(
    "raises", ["raise KeyError('x')", "raise SystemExit(2)", "return 3", "while True: pass"]
)
def test_an_exception_whose_text_cannot_be_read_keeps_type_line_and_frames(
    failed: Failed, raises: str
) -> None:
    code = (
        f"class Odd(Exception):\n    def __str__(self):\n        {raises}\n\ndef odd():\n    raise Odd('a')"
    )
    execution = failed(code, "odd")
    failure = execution.failure
    assert failure is not None
    assert failure.ename == "Odd"
    assert "while it was read" in failure.evalue
    assert [(frame.lineno, frame.line) for frame in failure.frames] == [(6, "raise Odd('a')")]
    assert "raise Odd('a')" in failure.traceback
    assert "line 6 of odd v1" in execution.to_text()


def test_each_exception_of_a_group_is_explained(failed: Failed) -> None:
    execution = failed(GROUP, "gather")
    assert execution.failure is not None
    assert [one.ename for one in execution.failure.linked] == ["ValueError", "AttributeError", "KeyError"]
    text = execution.to_text()
    assert "The code raised 3 exceptions together." in text
    assert "exception 1 of 3" in text
    assert "'a' cannot be converted to a number." in text
    assert "exception 2 of 3" in text
    assert "'NoneType'" in text or "None" in text
    assert "has no key" in execution.to_html()


def test_a_cause_is_explained_with_its_own_sentence(failed: Failed) -> None:
    execution = failed(CHAIN, "chain")
    explanation = execution.explain()
    assert explanation is not None
    (cause,) = explanation.linked
    assert cause.title == "Caused by"
    assert "'prize'" in cause.in_one_line
    assert "Line 4 of chain v1, in load" in cause.where
    assert "caused by" in execution.to_text()


def test_an_exception_raised_while_another_was_handled_tells_both(failed: Failed) -> None:
    code = "def both():\n    try:\n        return {}['a']\n    except KeyError:\n        return 1 / 0"
    explanation = failed(code, "both").explain()
    assert explanation is not None
    assert explanation.what == "The code divided by zero."
    assert [(one.title, "'a'" in one.what or "'a'" in one.where) for one in explanation.linked] == [
        ("While handling", True)
    ]


def test_exceptions_in_a_circle_are_told_once(failed: Failed) -> None:
    code = "def t():\n    a, b = ValueError('a'), KeyError('b')\n    a.__context__, b.__context__ = b, a\n    raise a"
    execution = failed(code, "t")
    assert execution.failure is not None
    assert [one.ename for one in execution.failure.linked] == ["KeyError"]

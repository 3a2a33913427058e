"""Exceptions that are hard to read, and linked ones."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("limit", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_a_recursion_with_a_high_limit_has_its_type_line_and_frames(failed: Failed, limit: int) -> None:
    execution = failed(DEEP.format(limit=limit), "deep")
    failure = execution.failure
    assert failure.ename in {"RecursionError", "MemoryError"}
    assert "while it was read" not in failure.evalue
    assert (failure.tool_frame.lineno if failure.tool_frame else 0) == 5
    assert 100 < len(failure.frames) <= 200
    assert failure.frames[0].name == "deep"
    assert "line 5" in execution.to_text()


def test_a_crash_by_recursion_in_c_code_is_a_recursion_error(failed: Failed) -> None:
    code = "import sys\ndef deep():\n    sys.setrecursionlimit(10**8)\n    class A:\n        def __repr__(self): return repr(self)\n    return repr(A())"
    execution = failed(code, "deep")
    assert execution.failure.ename == "RecursionError"
    assert "sys.setrecursionlimit" in str(execution.explain())


@pytest.mark.parametrize(
    "raises",
    ["raise KeyError('x')", "raise SystemExit(2)", pytest.param("while True: pass", marks=pytest.mark.slow)],
)
def test_an_exception_whose_text_cannot_be_read_keeps_type_line_and_frames(
    failed: Failed, raises: str
) -> None:
    code = (
        f"class Odd(Exception):\n    def __str__(self):\n        {raises}\n\ndef odd():\n    raise Odd('a')"
    )
    execution = failed(code, "odd")
    failure = execution.failure
    assert failure.ename == "Odd"
    assert "while it was read" in failure.evalue
    assert [(frame.lineno, frame.line) for frame in failure.frames] == [(6, "raise Odd('a')")]
    assert "raise Odd('a')" in failure.traceback
    assert "line 6 of odd v1" in execution.to_text()


#: Code → the exceptions linked with its failure, and what its text says of them.
LINKED = {
    "a group": (GROUP, ["ValueError", "AttributeError", "KeyError"],
                ("A group of 3 exceptions was raised.", "exception 1 of 3", "'a' is not a number.", "has no key")),
    "a cause": (CHAIN, ["KeyError"], ("caused by", "'prize'", "Line 4 of chain v1, in load")),
    "while another was handled": (
        "def both():\n    try:\n        return {}['a']\n    except KeyError:\n        return 1 / 0", ["KeyError"],
        ("The code divided by zero.", "while handling", "'a'")),
    "a circle": (
        "def t():\n    a, b = ValueError('a'), KeyError('b')\n    a.__context__, b.__context__ = b, a\n    raise a", ["KeyError"], ()),
}  # fmt: skip


@pytest.mark.parametrize("kind", LINKED)
def test_each_linked_exception_is_explained_once(failed: Failed, kind: str) -> None:
    code, linked, said = LINKED[kind]
    execution = failed(code, re.findall(r"^def (\w+)", code, re.MULTILINE)[-1])
    assert [one.ename for one in execution.failure.linked] == linked
    text = execution.to_text()
    assert [each for each in said if each not in text and each.capitalize() not in text] == []


def test_an_error_that_is_raised_anew_is_shown_once(failed: Failed) -> None:
    code = "def anew():\n    try:\n        return {}['a']\n    except KeyError as error:\n        raise KeyError('a') from error"
    execution = failed(code, "anew")
    assert [one.ename for one in execution.failure.linked] == ["KeyError"]
    assert "caused by" not in execution.to_text().partition("frames")[0]

"""Bounds of questions to a failed run's worker."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from healkit import Execution, Healkit
from healkit.errors import PostMortemError, PostMortemGone


@pytest.mark.slow
def test_an_expression_that_hangs_in_c_code_costs_the_worker_and_not_the_caller(
    failed: Callable[..., Execution],
) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    began = time.monotonic()
    with pytest.raises(PostMortemGone, match=r"did not answer within 3\.2 s"):
        asked.eval("sum(range(10**12))", timeout=0.2)
    assert time.monotonic() - began < 6
    with pytest.raises(PostMortemGone, match="did not answer"):
        asked.locals()


HOSTILE = """\
class Raises:
    def __repr__(self):
        raise ValueError("no")
    shape = property(__repr__)

class Hangs:
    def __repr__(self):
        while True:
            pass

class Huge:
    def __repr__(self):
        return "x" * 10**8

class Meta(type):
    def __getattribute__(cls, name):
        while True:
            pass

class Odd(metaclass=Meta):
    pass

def tool():
    raises, hangs, huge, odd = Raises(), Hangs(), Huge(), Odd()
    text, raw, number = "é" * 10**7, bytes(10**8), 10**100_000
    cycle = []
    cycle.append(cycle)
    lots = dict.fromkeys(range(10**6))
    lone = "\\ud800"
    nested = [raises]
    return 1 / 0
"""


@pytest.mark.slow
@pytest.mark.requirement("WORK-5")
def test_hostile_values_neither_hang_nor_flood(failed: Callable[..., Execution]) -> None:
    asked = failed(HOSTILE).post_mortem()
    began = time.monotonic()
    told = {one.name: one for one in asked.locals()}
    assert time.monotonic() - began < 4
    assert told["raises"].repr == "<Raises object, its repr raises ValueError>"
    assert told["hangs"].repr == "<Hangs object, its repr takes too long>"
    assert told["nested"].repr == "[<Raises object, its repr raises ValueError>]"
    assert "[100,000,000 long]" in told["raw"].repr
    assert told["number"].repr == "<int of about 100,001 digits>"
    assert told["cycle"].repr == "[[[[[...]]]]]"
    assert told["lots"].repr.endswith("...}")
    assert told["lone"].repr == r"'\ud800'"
    assert told["odd"].type == "Odd"
    assert max(len(one.repr) for one in told.values()) < 300
    assert len(asked.eval("huge").repr) < 2200


def test_a_deep_recursion_keeps_both_ends_under_their_numbers(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool(depth=0):\n    return tool(depth + 1)\n").post_mortem()
    frames = asked.frames()
    assert len(frames) == 200
    assert asked.eval("depth", frame=frames[-1]).repr == str(frames[-1].number)
    assert asked.eval("depth", frame=0).repr == "0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "timeout_s", "expected"),
    [
        (
            "def tool():\n    held = []\n    while True:\n        held.append(bytearray(10**8))\n",
            30,
            "MemoryError",
        ),
        ("import time\n\ndef tool():\n    waited = 1\n    time.sleep(60)\n", 1, "TimeoutError"),
    ],
)
def test_a_run_that_met_its_limit_can_be_asked_too(
    healkit: Healkit, code: str, timeout_s: float, expected: str
) -> None:
    healkit.vault.add("tool", code)
    execution = healkit.execute("tool", timeout=timeout_s)
    assert execution.failure.ename == expected
    asked = execution.post_mortem()
    assert len(asked.locals()) == 1
    done = asked.eval("bytearray(2 * 10**9)")
    assert done.ename == "MemoryError"
    assert asked.eval("[None for _ in range(10**6)][0]").repr == "None"


@pytest.mark.requirement("WORK-5", "WORK-3")
def test_the_restrictions_of_the_run_hold_for_questions(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    for expression in (
        "open('/etc/passwd').read()",
        "__import__('socket').socket()",
        "__import__('os').fork()",
        "__import__('os').kill(__import__('os').getppid(), 9)",
        "open('/tmp/outside', 'w')",
    ):
        assert asked.eval(expression).ename in {
            "FileNotFoundError",
            "PermissionError",
            "OSError",  # a file system that is mounted read-only
        }, expression


#: What a tool could make its kernel answer; size, depth, type and signature are checked.
ANSWERING = """
def tool():
    import gc
    from ipykernel.kernelbase import Kernel
    kernel = Kernel.instance()
    for kind in list(kernel.shell_handlers):
        if "post_mortem" in kind:
            def handle(stream, idents, message):
                kernel.session.send(stream, "any", {"answer": ANSWER}, parent=message, ident=idents)
            kernel.shell_handlers[kind] = handle
    return 1 / 0
"""


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (""" '{"type": "frames", "frames": [{"number": "one"}]}' """, "sent an invalid answer"),
        ("'[' * 200_000", "sent an invalid answer"),
        pytest.param("'x' * 2**23", "did not answer", marks=pytest.mark.slow),
    ],
    ids=["a wrong type", "200,000 levels", "8 MB"],
)
def test_an_invalid_answer_is_refused(failed: Callable[..., Execution], answer: str, said: str) -> None:
    """S2: an answer was parsed whole before anything of it was counted, and a deep one raised RecursionError."""
    execution = failed(ANSWERING.replace("ANSWER", answer.strip(), 1))
    with pytest.raises(PostMortemError, match=said):
        execution.post_mortem()


@pytest.mark.requirement("FACE-4", "TRACE-3")
def test_what_looks_like_a_secret_is_not_told_nor_more_than_200_locals(
    failed: Callable[..., Execution],
) -> None:
    code = (
        "password, n = 'kor' + 'rekthorse', 3\ntoken = 'ghp_' + '0123456789abcdefghijABCDEFGHIJ012345'\n"
        "for i in range(1000):\n    globals()[f'name_{i}'] = i\nresult = 1 / 0\n"
    )
    asked = failed(code).post_mortem()
    names = [one.name for one in asked.locals()]
    assert len(names) == 201
    assert asked.locals()[-1].repr == "805 more are not shown"
    assert not {"mcp", "Tool"} & set(names)
    told = {one.name: one.repr for one in asked.locals()}
    assert told["n"] == "3"
    assert "rekthorse" not in told["password"]
    assert "0123456789" not in told["token"] + asked.eval("token").repr + asked.to_text()

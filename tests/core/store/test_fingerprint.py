"""Fingerprints: what must be one failure, and what must not."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.core.contracts.failure import Failure, Frame
from healkit.core.pysource.tracebacks import fingerprint, normalise

LOG_11 = pytest.mark.requirement("LOG-11")


def raised(
    evalue: str = "division by zero",
    *frames: tuple[str, str],
    ename: str = "ZeroDivisionError",
    code: str = "TOOL_EXCEPTION",
    entry: str = "<fibonacci@1>",
    lineno: int = 2,
    library: str = "",
) -> Failure:
    """Make a failure with those frames (function, line) of the tool, and a library's at the end if named."""
    own = [
        Frame(entry, lineno + i, name, line, in_tool=True)
        for i, (name, line) in enumerate(frames or [("f", "1 / 0")])
    ]
    if library:
        own.append(Frame(library, 99, "inner", "raise error"))
    return Failure(code, ename, evalue, "Traceback …", own)


SAME = {
    "the same": (raised(), raised()),
    "line shifted": (raised(lineno=2), raised(lineno=40)),
    "another revision with the same line": (raised(entry="<f@1>"), raised(entry="<f@7>")),
    "indented otherwise": (raised("x", ("f", "    return 1 / 0")), raised("x", ("f", "return  1 / 0"))),
    "another place in a library": (raised(library="/a/pandas/core.py"), raised(library="/b/pandas/io.py")),
    "no library": (raised(library="/a/pandas/core.py"), raised()),
    "another number": (raised("index 3 is out of bounds"), raised("index 1024 is out of bounds")),
    "negative, float, exponent": (raised("got -1"), raised("got 3.5e-7")),
    "thousands": (raised("over 1,000,000 bytes"), raised("over 12 bytes")),
    "quoted value": (raised("'x'", ename="KeyError"), raised("'a longer key'", ename="KeyError")),
    "quoted with another quote": (raised('key "it\'s" is not there'), raised("key 'x' is not there")),
    "quoted with an escape": (raised(r"key 'it\'s' is bad"), raised("key 'x' is bad")),
    "address": (raised("<object at 0x7f00dead>"), raised("<object at 0x10>")),
    "uuid": (raised("no row 0190163d-8694-739b-aea5-966c26f8ad90"), raised("no row 7d444840-9dc0-11d1-b245-5ffdce74fad2")),
    "hash": (raised("commit 9f86d08 is gone"), raised("commit 60303ae22b998861bce3b28f33eec1be758a213c is gone")),
    "path": (raised("cannot read /tmp/a/b.csv"), raised("cannot read /home/ada/data/x.parquet")),
    "path at a sentence's end": (raised("cannot read /tmp/a.csv."), raised("cannot read /data/b.csv.")),
    "windows path": (raised(r"cannot read C:\data\a.csv"), raised(r"cannot read D:\b.csv")),
    "relative path": (raised("no file ./a.csv"), raised("no file ../b/c.csv")),
    "url": (raised("404 for https://a.example/x?y=1"), raised("404 for http://b.example")),
    "ip and port": (raised("no answer from 10.0.0.1:80"), raised("no answer from 192.168.7.9:8080")),
    "time": (raised("not before 2026-01-02T03:04:05Z"), raised("not before 1999-12-31 23:59:59.123")),
    "e-mail": (raised("no user ada@example.org"), raised("no user bob@mail.example.com")),
    "numbered name": (raised("worker_3 died"), raised("worker_12 died")),
    "lists of several lengths": (raised("missing columns ['a', 'b']"), raised("missing columns ['a', 'b', 'c']")),
    "tuples of numbers": (raised("shapes (3, 4) and (5, 6)"), raised("shapes (30, 4, 1) and (2, 2)")),
    "another line break": (raised("a\n  b"), raised("a b")),
    "deeper recursion": (raised("x", ("f", "g(n)"), ("f", "g(n)"), ("f", "1 / n")), raised("x", ("f", "g(n)"), ("f", "1 / n"))),
    "deeper mutual recursion": (
        raised("x", ("a", "b()"), ("b", "a()"), ("a", "b()"), ("b", "1 / 0")),
        raised("x", ("a", "b()"), ("b", "a()"), ("a", "b()"), ("b", "a()"), ("a", "b()"), ("b", "1 / 0")),
    ),
    "recursion without end, cut at either function": (
        raised("maximum recursion depth exceeded", ("a", "b()"), ("b", "a()"), ename="RecursionError"),
        raised(
            "maximum recursion depth exceeded",
            ("a", "b()"),
            ("b", "a()"),
            ("a", "b()"),
            ename="RecursionError",
        ),
    ),
    "a time-out wherever it struck": (
        raised("still running after 30 s", ("f", "g()"), ("g", "x += 1"), code="TOOL_TIMEOUT"),
        raised("still running after 5 s", ("f", "g()"), ("g", "y = x"), code="TOOL_TIMEOUT"),
    ),
}  # fmt: skip
DIFFERENT = {
    "exception type": (raised(ename="ValueError"), raised(ename="TypeError")),
    "how it ended": (raised(code="TOOL_EXCEPTION"), raised(code="TOOL_CRASHED")),
    "code line": (raised("x", ("f", "return 1 / 0")), raised("x", ("f", "return 1 / n"))),
    "number in the code line": (raised("x", ("f", "return rows[0]")), raised("x", ("f", "return rows[1]"))),
    "function": (raised("x", ("f", "1 / 0")), raised("x", ("g", "1 / 0"))),
    "caller": (raised("x", ("run", "a()"), ("a", "1 / 0")), raised("x", ("run", "b()"), ("a", "1 / 0"))),
    "where a recursion ended": (raised("x", ("f", "g(n)"), ("f", "1 / n")), raised("x", ("f", "g(n)"), ("f", "1 / n"), ("f", "g(n)"))),
    "words of the message": (raised("too short"), raised("unknown unit")),
    "words around a value": (raised("unknown unit 'm'"), raised("unknown currency 'm'")),
    "what kind of value": (raised("no such file /tmp/x"), raised("no such file 7")),
    "an apostrophe is no quote": (raised("can't add 'a' to it"), raised("can't divide 'a' by it")),
    "words that look like hexadecimal": (raised("bad facade"), raised("bad decade")),
    "no message": (raised(""), raised("x")),
    "where a call that timed out began": (
        raised("still running", ("f", "g()"), code="TOOL_TIMEOUT"),
        raised("still running", ("f", "h()"), code="TOOL_TIMEOUT"),
    ),
}  # fmt: skip


@LOG_11
@pytest.mark.parametrize("name", SAME)
def test_equal_failures_have_one_fingerprint(name: str) -> None:
    one, other = SAME[name]
    assert fingerprint(one) == fingerprint(other), (normalise(one.evalue), normalise(other.evalue))


@LOG_11
@pytest.mark.parametrize("name", DIFFERENT)
def test_different_failures_have_different_fingerprints(name: str) -> None:
    one, other = DIFFERENT[name]
    assert fingerprint(one) != fingerprint(other), normalise(one.evalue)


@LOG_11
def test_a_fingerprint_names_its_algorithm_and_does_not_change_from_run_to_run() -> None:
    assert re.fullmatch(r"v1:[0-9a-f]{16}", fingerprint(raised()))
    # Stored fingerprints are compared with new ones: another value here is another version of the algorithm.
    assert fingerprint(raised("index 3 is out of bounds for '/tmp/x'")) == "v1:a3cfcdb505312085"


@pytest.mark.slow
@given(st.text())
def test_any_message_is_normalised(message: str) -> None:
    assert fingerprint(raised(message)).startswith("v1:")
    assert len(normalise("x" * 100_000 + message)) <= 2000


@pytest.mark.parametrize("evil", ["'", "\\'", "a@", "1,", "0", "/.", "<a> "])
def test_a_hostile_message_is_normalised_as_fast(evil: str) -> None:
    begun = time.thread_time()
    normalise(evil * 5000)
    assert time.thread_time() - begun < 1.0  # its own time on the processor, whatever else runs

"""Searches: many variants of one code in one child."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from trial_server_samples import children_of_trial_servers, trial_servers
from waiting import wait_until

from healkit import Config, Healkit
from healkit.core.contracts.patches import Check, Edit
from healkit.core.contracts.tools import EntryRef
from healkit.core.runtime import background
from healkit.parts.trials.messages import Candidate
from healkit.parts.trials.trials import Held, Score, Trials
from healkit.parts.trials.variants import Scores

TIERS = ["namespaces", *(pytest.param(tier, marks=pytest.mark.slow) for tier in ("landlock", "process"))]
ENTRY = EntryRef("f", "default", 0, "")


def returns(value: Any, **arguments: Any) -> Check:
    return Check(origin="declared", arguments=arguments, known=True, expected=value)


def whole(*codes: str) -> list[list[Edit]]:
    """Candidates that replace the whole of an empty code."""
    return [[Edit(0, 0, code)] for code in codes]


def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return background.loop.submit(coroutine).result(timeout=120)


def searched(
    healkit: Healkit,
    candidates: Iterable[Candidate],
    checks: Sequence[Check],
    take: Callable[[Scores], object],
    *,
    code: str = "",
    limit_s: float = 0.5,
    parallel: int = 1,
    **more: Any,
) -> Score:
    """Search among the candidates; `take` is given the letters as they come."""
    left = iter(candidates)

    async def draw(count: int) -> Sequence[Candidate]:
        return list(itertools.islice(left, count))

    held = Held(ENTRY, code, checks, [limit_s] * len(checks))
    batches = Trials(healkit.recorder, healkit.config)
    score: Score = wait(batches.score(held, draw, take, parallel=parallel, **more))
    return score


def scored(
    healkit: Healkit, candidates: Sequence[Candidate], checks: Sequence[Check], **more: Any
) -> list[str]:
    """Return every candidate's letters, in order."""
    found = dict[int, str]()
    searched(healkit, candidates, checks, found.update, **more)
    return [found[position] for position in range(len(found))]


@pytest.fixture
def at_tier(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Healkit]:
    with Healkit(
        tmp_path / "x.db", config=Config(isolation=request.param, start_timeout_s=30, memory_mb=128)
    ) as healkit:
        yield healkit


HOSTILE = {
    "def f(n):\n    return n + 1\n": "..",
    "def f(n):\n    return n + 2\n": "ww",
    "def f(n):\n    return n +\n": "--",
    "def f(n):\n    raise ValueError\n": "ee",
    "def f(n):\n    raise SystemExit\n": "ee",
    "import sys\ndef f(n):\n    sys.exit(3)\n": "ee",
    "def f(n):\n    raise KeyboardInterrupt\n": "ee",
    "class Odd(BaseException): pass\ndef f(n):\n    raise Odd\n": "ee",
    "def f(n):\n    return f(n)\n": "ee",
    "def f(n):\n    held = []\n    while True:\n        held.append(bytearray(10**7))\n": "ee",
    "def f(n):\n    while True:\n        print('x' * 10**6)\n": "ee",
    "def f(n, m):\n    return n\n": "ee",
    "def g(n):\n    return n\ndef h(n):\n    return n\n": "ee",
    "import os\ndef f(n):\n    os._exit(0)\n": "dd",
    "import ctypes\ndef f(n):\n    ctypes.string_at(0)\n": "dd",
    "import os, signal\ndef f(n):\n    os.kill(os.getpid(), signal.SIGKILL)\n": "dd",
    "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    return max([n], key=f)\n": "dd"
    if sys.version_info < (3, 12)
    else "ee",  # since 3.12, C code has a limit of its own, which cannot be raised
    "def f(n):\n    while True:\n        pass\n": "tt",
    "def f(n):\n    while True:\n        try:\n            while True: pass\n        except: pass\n": "tt",
    "def f(n):\n    try:\n        while True: pass\n    except:\n        return n + 1\n": "tt",
    "def f(n):\n    return sum(range(10**11))\n": "tt",
    "import signal\ndef f(n):\n    signal.setitimer(signal.ITIMER_REAL, 0)\n    while True: pass\n": "tt",
    "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ndef f(n):\n    while True: pass\n": "tt",
    "import time\ndef f(n):\n    time.sleep(30)\n": "tt",
    "import threading, time\n"
    "def f(n):\n    threading.Thread(target=time.sleep, args=(9,)).start()\n    return n + 1\n": "..",
    "import os\ndef f(n):\n    os.closerange(0, 100)\n    return n + 1\n": "..",
    "async def f(n):\n    return n + 1\n": "..",
    "class T(Tool):\n    def run(self, arguments):\n        return arguments['n'] + 1\n": "..",
    "result = arguments['n'] + 1\n": "..",
    "class V:\n    def __eq__(self, other): return True\ndef f(n):\n    return V()\n": "ww",
    "def f(n):\n    return 'x' * 10**7\n": "ww",
}


#: One that dies, one that only a kill ends, one that uses up its memory; and after them one that is right.
WORST = [
    "import os\ndef f(n):\n    os._exit(0)\n",
    "def f(n):\n    return sum(range(10**11))\n",
    "def f(n):\n    held = []\n    while True:\n        held.append(bytearray(10**7))\n",
    "def f(n):\n    return n + 1\n",
]


def outcomes(healkit: Healkit, codes: Sequence[str]) -> dict[str, str]:
    checks = [returns(2, n=1), returns(3, n=2)]
    found = scored(healkit, whole(*codes), checks, every=True, parallel=3, limit_s=0.3)
    return dict(zip(codes, found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("at_tier", ["namespaces"], indirect=True)
def test_every_hostile_kind_has_one_outcome_and_the_search_goes_on(at_tier: Healkit) -> None:
    assert outcomes(at_tier, list(HOSTILE)) == HOSTILE


@pytest.mark.slow
@pytest.mark.parametrize("at_tier", ["landlock", "process"], indirect=True)
def test_a_search_survives_hostile_candidates_at_the_other_tiers(at_tier: Healkit) -> None:
    assert outcomes(at_tier, WORST) == {code: HOSTILE[code] for code in WORST}


LEAKS = [
    "import sys\nsys.setrecursionlimit(60)",
    "import builtins\nbuiltins.len = None\nbuiltins.leak = 1",
    "import sys, types\nsys.modules['json'] = None\nsys.modules['leak'] = types.ModuleType('leak')",
    "import sys\nsys.path.insert(0, 'leak')",
    "import os\nos.environ['LEAK'] = '1'",
    "import os\nos.mkdir('sub')\nopen('sub/leak', 'w').close()\nos.chdir('sub')",
    "import random\nrandom.seed(9)",
    "import sys\nsys.stdout = None",
    "import gc\ngc.disable()",
    "leak = 1",
]
LOOK = (
    "import sys, os, builtins, random, gc\n"
    "def f(names, n):\n"
    "    seen = [sys.getrecursionlimit() > 500, hasattr(builtins, 'leak'), len('ab'), 'leak' in sys.modules,\n"
    "            sys.modules.get('json', 0) is None, 'leak' in sys.path, os.environ.get('LEAK'), os.listdir('.'),\n"
    "            random.random(), sys.stdout is None, gc.isenabled(), 'leak' in globals(), names == ['a']]\n"
    "    names.append('b')\n"
    "    open('leak', 'w').close()\n"
    "    return seen\n"
)
CLEAN = [True, False, 2, False, False, False, None, [], 0.8444218515250481, False, True, False, True]


@pytest.mark.parametrize("at_tier", TIERS, indirect=True)
def test_no_state_leaks_between_candidates_or_checks(at_tier: Healkit) -> None:
    check = returns(CLEAN, names=["a"], n=1)
    codes = [code for leak in LEAKS for code in (f"{leak}\n{LOOK}", LOOK)]
    found = scored(at_tier, whole(LOOK, *codes), [check, check], every=True)
    assert found[0] == ".."
    assert found[2::2] == [".."] * len(LEAKS)


@pytest.mark.parametrize("at_tier", TIERS[:2], indirect=True)
def test_candidates_have_no_network_no_process_and_read_nothing_outside(
    at_tier: Healkit, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the host's")
    tried = [
        f"def f():\n    return open({str(secret)!r}).read()\n",
        "import socket\ndef f():\n    socket.socket()\n",
        "import os\ndef f():\n    return os.fork()\n",
        "import os\ndef f():\n    return os.kill(os.getppid(), 9)\n",
        f"def f():\n    open({str(tmp_path / 'written')!r}, 'w')\n",
        "def f():\n    return mcp.host.anything()\n",
    ]
    # The last one has no record that its call could be answered from.
    assert scored(at_tier, whole(*tried), [Check(origin="declared")]) == [*"eeeee", "n"]
    assert not (tmp_path / "written").exists()


def test_checks_stop_at_the_first_failure_unless_every_one_is_asked_for(
    healkit: Healkit,
) -> None:
    checks = [returns(1, n=1), returns(0, n=2), returns(3, n=3)]
    same = whole("def f(n):\n    return n\n")
    assert scored(healkit, same, checks) == [".w-"]
    assert scored(healkit, same, checks, every=True) == [".w."]


def test_checks_may_want_an_exception_or_a_call_beside_the_code(healkit: Healkit) -> None:
    checks = [
        Check(origin="declared", call="f(1)", raises="ValueError"),
        Check(origin="declared", call="x = [1]\nx.append(g())\nx", known=True, expected=[1, 2]),
        Check(origin="declared", call="this is no Python"),
        Check(origin="failing", call="g()"),
    ]
    codes = whole(
        "def f(n):\n    raise ValueError\ndef g():\n    return 2\n",
        "class ValueError(Exception): pass\ndef f(n):\n    raise ValueError\ndef g():\n    return [2]\n",
        "def f(n):\n    return 1\n",
    )
    assert scored(healkit, codes, checks, every=True) == ["..e.", ".we.", "weee"]


def test_splices_are_made_to_the_batchs_own_code(healkit: Healkit) -> None:
    code = "# ä\ndef f(n):\n    return n - 1\n"
    at = code.index("-")
    candidates = [[Edit(at, at + 1, sign)] for sign in "+-*"] + [[]]
    assert scored(healkit, candidates, [returns(4, n=3)], code=code) == [".", "w", "w", "w"]


def test_a_search_is_one_row_from_its_beginning_to_its_end(healkit: Healkit) -> None:
    states: list[list[str]] = []

    def look(_scores: Scores) -> None:
        states.append([row.status for row in healkit.log.query().rows])

    codes = whole("def f():\n    return 1\n", "def f():\n    return 2\n")
    assert isinstance(searched(healkit, codes, [returns(1)], look), Score)
    assert states[0] == ["RUNNING"]
    (row,) = healkit.log.query().rows
    assert (row.status, row.origin, row.tool_name) == ("SUCCESS", "search", "f")
    assert row.isolation in {"namespaces", "landlock"}
    assert row.result_summary == '{"checks":1,"candidates":2,"plausible":1,"outcomes":{".":1,"w":1}}'


@pytest.mark.slow
def test_a_trial_server_that_is_killed_loses_only_what_was_in_flight(healkit: Healkit) -> None:
    code = "import time\ndef f(n):\n    time.sleep(0.005)\n    return n\n"
    killed = threading.Event()
    found: dict[int, str] = {}

    def take(scores: Scores) -> None:
        found.update(scores)
        if len(found) > 40 and not killed.is_set():
            killed.set()
            for server in trial_servers():
                with contextlib.suppress(psutil.NoSuchProcess):  # a child goes with its trial server
                    server.kill()

    candidates = [[Edit(0, 0, f"# {number}\n")] for number in range(300)]
    searched(healkit, candidates, [returns(1, n=1)], take, code=code, limit_s=1.0, parallel=2)
    assert killed.is_set()
    assert sorted(found) == list(range(300))
    lost = [letters for letters in found.values() if letters != "."]
    assert 1 <= len(lost) <= 4  # a trial server and its child are found as two of the same name
    assert set(lost) == {"d"}


def test_cancelling_a_search_ends_its_processes_and_its_row_says_so(healkit: Healkit) -> None:
    code = "def f():\n    while True: pass\n"
    begun = threading.Event()

    async def draw(count: int) -> Sequence[Candidate]:
        begun.set()
        return [[]] * count

    batches = Trials(healkit.recorder, healkit.config)
    future = background.loop.submit(
        batches.score(Held(ENTRY, code, [returns(1)], [5.0]), draw, print, parallel=2)
    )
    assert begun.wait(30)
    future.cancel()

    wait_until(lambda: not healkit.log.count(status="RUNNING"))
    (row,) = healkit.log.query().rows
    assert row.status == "SUCCESS"
    assert '"stopped":true' in row.result_summary
    assert children_of_trial_servers() == []


def test_candidates_are_drawn_as_they_are_needed(healkit: Healkit) -> None:
    drawn, ahead = [], []

    def take(scores: Scores) -> None:
        ahead.append(len(drawn) - max(position for position, _ in scores))

    candidates = (drawn.append(number) or [] for number in range(3000))
    slow = "def f():\n    return sum(range(3000))\n"
    searched(healkit, candidates, [Check(origin="declared")], take, code=slow, limit_s=1.0, parallel=2)
    assert len(drawn) == 3000
    assert ahead[0] < 100


def test_observing_tells_lines_types_and_where_it_failed(healkit: Healkit) -> None:
    code = (
        "LIMIT = 3\n"
        "def helper(text):\n"
        "    if len(text) > LIMIT:\n"
        "        raise ValueError(text)\n"
        "    return text\n"
        "def f(items):\n"
        "    total = 0.0\n"
        "    for item in items:\n"
        "        total += len(helper(item))\n"
        "    return total\n"
    )
    checks = [
        returns(2.0, items=["a", "b"]),
        returns(9, items=["long one"]),
        Check(origin="failing", call="f(None)"),
    ]
    batches = Trials(healkit.recorder, healkit.config)
    passing, failing, called = wait(batches.observe(Held(ENTRY, code, checks, [2.0] * 3)))
    assert passing.result.outcome == "passed"
    assert passing.lines == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert passing.types["f.total"] == ["float"]
    assert passing.types["helper.LIMIT"] == ["int"]
    assert (failing.result.outcome, failing.failed_lines) == ("raised", [9, 4])
    assert 4 in failing.lines
    assert failing.types["helper.text"] == ["str"]
    assert (called.result.outcome, called.failed_lines) == ("raised", [8])
    assert called.types["f.items"] == ["NoneType"]
    (row,) = healkit.log.query().rows
    assert (row.origin, row.result_summary) == ("search", '{"observed":3}')


@pytest.mark.slow
def test_a_hang_or_crash_under_observation_is_reported_as_such(healkit: Healkit) -> None:
    codes = {
        "def f():\n    while True:\n        pass\n": ("timeout", True),
        "def f():\n    return sum(range(10**11))\n": ("timeout", False),
        "import ctypes\ndef f():\n    ctypes.string_at(0)\n": ("died", False),
    }
    batches = Trials(healkit.recorder, healkit.config)
    for code, (outcome, lines) in codes.items():
        (observed,) = wait(batches.observe(Held(ENTRY, code, [Check(origin="failing")], [0.5])))
        assert observed.result.outcome == outcome
        assert bool(observed.lines) is lines
        assert observed.failed_lines


def test_each_code_runs_with_each_check_in_a_process_of_its_own(healkit: Healkit) -> None:
    checks = [returns(1, n=1), Check(origin="declared", call="f(0)", raises="ZeroDivisionError")]
    codes = ["def f(n):\n    return 1 // n\n", "def f(n):\n    return n\n"]
    batches = Trials(healkit.recorder, healkit.config)
    results = wait(batches.check(ENTRY, codes, checks, [2.0, 2.0]))
    assert [[one.outcome for one in row] for row in results] == [["passed", "passed"], ["passed", "wrong"]]
    assert results[0][1].failure.startswith("ZeroDivisionError: ")
    rows = {row.trace_id: row for row in healkit.log.query().rows}
    assert {one.trace_id for row in results for one in row} == set(rows)
    assert {row.origin for row in rows.values()} == {"trial"}

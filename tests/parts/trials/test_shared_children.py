"""Trials that share a child: the same results as alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from healkit import Healkit
from healkit.parts.trials.pure_code import is_pure
from healkit.parts.trials.trials import Trial, TrialResult

COUNT = 10
#: Code that would show a state left by an earlier trial, or ends in some way for one input of all.
SHARED = {
    "default argument": "def f(n, seen=[]):\n    seen.append(n)\n    return seen\n",
    "module variable": "total = 0\ndef f(n):\n    global total\n    total += n\n    return total\n",
    "cache": "from functools import lru_cache\ncalls = []\n@lru_cache(None)\ndef g(n):\n    calls.append(n)\n"
    "    return n\ndef f(n):\n    g(n % 2)\n    return calls\n",
    "class attribute": "class A:\n    count = 0\n    def __init__(self):\n        A.count += 1\n"
    "        self.__class__.count += 1\ndef f(n):\n    A()\n    return A.count\n",
    "function attribute": "def f(n):\n    f.calls = f.__class__.__name__, n\n    return f.calls\n",
    "linked nodes": "class N:\n    pass\ndef f(n):\n    a, b = N(), N()\n    a.next, b.next = b, a\n"
    "    a.next.value = n\n    return b.value\n",
    "printing": "def f(n):\n    print('n is', n)\n    return n\n",
    "generator left open": "def g(n):\n    try:\n        yield n\n        yield n\n    finally:\n"
    "        print('closed', n)\nit = None\ndef f(n):\n    global it\n    [[] for _ in range(20000)]\n    it = g(n)\n    return next(it)\n",
    "cycle with a generator": "def g(n):\n    try:\n        me = yield n\n        yield me\n    finally:\n"
    "        print('closed', n)\ndef f(n):\n    [[] for _ in range(20000)]\n    it = g(n)\n    next(it)\n    it.send(it)\n    return n\n",
    "recursion depth": "def g(n):\n    try:\n        return g(n + 1)\n    except RecursionError:\n        return n\n"
    "def f(n):\n    return g(0)\n",
    "seed": "import random\ndef f(n):\n    random.seed(n)\n    return [random.random(), random.gauss(0, 1)]\n",
    "decimal": "from decimal import Decimal\ndef f(n):\n    return str(Decimal(n) / Decimal(7)), Decimal(1) / 3\n",
    "shuffled argument": "def f(n, rows=(1, 2)):\n    rows = list(rows)\n    rows.append(n)\n    return rows\n",
    "dataclass": "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    xs: list = field(default_factory=list)\n"
    "def f(n):\n    p = P()\n    p.xs.append(n)\n    return p.xs\n",
    "patterns": "import re\nP = re.compile(r'(\\d)+')\ndef f(n):\n    return P.findall(f'a{n}b{n}')\n",
    "a type's outline": "def f(n):\n    return (n, {n: 1.5}) if n % 2 else {'n': [n]}\n",
    "no value": "def f(n):\n    print(n, end='')\n",
    "an exception": "def f(n):\n    print('before', n)\n    return 1 / (n - 5)\n",
    "only exceptions": "def f(n):\n    print(n)\n    raise ValueError(f'no {n}')\n",
    "a swallowed alarm": "def f(n):\n    if n == 5:\n        try:\n            while True:\n                pass\n"
    "        except BaseException as error:\n            return type(error).__name__\n    return n\n",
    "an endless loop": "def f(n):\n    while n == 5: pass\n    return n\n",
    "a hang in C": "def f(n):\n    return sum(range(10**11)) if n == 5 else n\n",
    "too much memory": "def f(n):\n    return len([0] * 10**10) if n == 5 else n\n",
    "a little too much memory": "def f(n):\n    return len(bytes(1_090_000_000)) if n == 5 else n\n",
    "too deep a recursion": "def f(n):\n    return f(n) + 1 if n == 5 else n\n",
    "too much output": "def f(n):\n    if n == 5:\n        for _ in range(10**6):\n            print('x' * 1000)\n    return n\n",
    "too large a result": "def f(n):\n    return 'x' * 20_000_000 if n == 5 else n\n",
    "a result that cannot cross": "def f(n):\n    return (m for m in range(n)) if n == 5 else n\n",
    "the end of the process": "def f(n):\n    if n == 5:\n        raise SystemExit(3)\n    return n\n",
    "a slow one": "import time\ndef f(n):\n    if n == 5:\n        time.sleep(0.15)\n    return n\n",
}  # fmt: skip
#: Code that reaches out of its module, and is tried alone.
ALONE = {
    "recursion limit": "import sys\ndef f(n):\n    sys.setrecursionlimit(sys.getrecursionlimit() + n)\n    return sys.getrecursionlimit()\n",
    "decimal context": "import decimal\ndef f(n):\n    decimal.getcontext().prec += n\n    return decimal.getcontext().prec\n",
    "warnings": "import warnings\ndef f(n):\n    warnings.warn('old')\n    return n\n",
    "module attribute": "import math\ndef f(n):\n    math.pi += n\n    return math.pi\n",
    "module by another name": "import json\ne = json.JSONEncoder\ndef f(n):\n    e.seen = getattr(e, 'seen', 0) + 1\n    return e.seen\n",
    "class of a library": "from collections import Counter\ndef f(n):\n    Counter.seen = n + 1\n    return Counter.seen\n",
    "another module's module": "import dataclasses\ndef f(n):\n    dataclasses.sys.setrecursionlimit(500 + n)\n    return n\n",
    "environment": "import os\ndef f(n):\n    before = os.environ.get('SEEN')\n    os.environ['SEEN'] = '1'\n    return before\n",
    "file": "def f(n):\n    with open('seen', 'a+') as file:\n        file.write('x')\n        return file.tell()\n",
    "exit": "import os\ndef f(n):\n    if n == 5:\n        os._exit(3)\n    return n\n",
    "builtin": "import builtins\ndef f(n):\n    builtins.seen = getattr(builtins, 'seen', 0) + 1\n    return builtins.seen\n",
    "subclasses": "def f(n):\n    return len([c for c in object.__subclasses__() if c.__name__ == 'A'])\nclass A: pass\n",
    "registry": "from collections.abc import Sized\nclass A: pass\ndef f(n):\n    before = isinstance(1, Sized)\n    Sized.register(int)\n    return before\n",
    "finalizer": "class A:\n    def __del__(self):\n        print('gone')\ndef f(n):\n    A()\n    return n\n",
    "coroutine": "async def f(n):\n    return n\n",
    "exec": "def f(n):\n    exec('x = n')\n    return n\n",
}  # fmt: skip


def outcome(result: TrialResult) -> dict[str, Any]:
    """Return what does not depend on the clock."""
    return {
        name: getattr(result, name)
        for name in ("value", "failure", "printed", "outline", "answered", "displaced")
    }


def row_of(healkit: Healkit, result: TrialResult) -> tuple[Any, ...]:
    """Return the same of its row in the log."""
    row = healkit.log.by_trace(result.trace_id)
    assert row is not None
    return row.status, row.result_summary, row.error_traceback, row.last_output, row.origin, row.isolation


@pytest.fixture(scope="module", params=[False, True], ids=["as JSON", "exact"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return the outcomes of each code's trials, one by one and together."""
    trials = [
        Trial(code, {"n": n}, "f", timeout_s=0.25, exact=request.param)
        for code in (*SHARED.values(), *ALONE.values())
        for n in range(COUNT)
    ]
    other = Trial("def other():\n    pass\n", {}, "other")  # between two of one code, it keeps them apart
    with Healkit(tmp_path_factory.mktemp("both") / "healkit.db") as healkit:
        alone = healkit.trials([one for trial in trials for one in (trial, other)], parallel=1)[::2]
        together = healkit.trials(trials, parallel=1)
        found = [
            [(outcome(result), row_of(healkit, result)) for result in results]
            for results in (alone, together)
        ]
    starts = range(0, len(trials), COUNT)
    return {
        name: (found[0][start : start + COUNT], found[1][start : start + COUNT])
        for name, start in zip((*SHARED, *ALONE), starts, strict=True)
    }


@pytest.mark.slow
@pytest.mark.requirement("SCALE-5", "WORK-6")
@pytest.mark.parametrize("name", [*SHARED, *ALONE])
def test_trials_of_one_code_give_the_same_together_as_one_by_one(
    both: dict[str, tuple[list[Any], list[Any]]], name: str
) -> None:
    alone, together = both[name]
    assert together == alone


def test_code_that_reaches_out_of_its_module_is_known() -> None:
    assert [name for name, code in SHARED.items() if not is_pure(code)] == []
    assert [name for name, code in ALONE.items() if is_pure(code)] == []


def test_a_seed_holds_for_its_trial_only(healkit: Healkit) -> None:
    code = (
        "import random\ndef f(n):\n    random.seed(1)\n    return random.random()\nfirst = random.random()\n"
    )
    trials = [Trial(code, {"n": n}, "f", call="f(0), first") for n in range(30)]
    found = [result.value for result in healkit.trials(trials, parallel=1)]
    assert len({seeded for seeded, _ in found}) == 1
    assert len({first for _, first in found}) == len(found)


def test_quick_trials_share_a_child_and_have_times_of_their_own(healkit: Healkit) -> None:
    code = "import time\ndef f(n):\n    time.sleep(n)\n    return time.process_time()\n"
    for _ in range(10):
        results = healkit.trials(
            [Trial(code, {"n": n / 1000}, "f") for n in [1] * 20 + [30] + [1] * 5], parallel=1
        )
        used_s = [result.value for result in results]
        took_ms = [result.duration_ms for result in results]
        shared = sum(a < b for a, b in itertools.pairwise(used_s))
        if shared >= 20:  # a busy machine makes a trial slow, which is then run by itself
            break
    assert shared >= 20
    assert took_ms[20] >= 30 > sorted(took_ms)[len(took_ms) // 2] >= 1

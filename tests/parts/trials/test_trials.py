"""Trials by the hundred, and the mode without a kernel."""

from __future__ import annotations

import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import psutil
import pytest
from trial_server_samples import trial_servers

from healkit import Config, Healkit
from healkit.core.runtime import background
from healkit.errors import ConfigError
from healkit.parts.trials.trials import Trial

DOUBLE = "def double(n):\n    return n * 2\n"


@pytest.mark.requirement("WORK-6", "SCALE-2")
@pytest.mark.parametrize("kind", ["here", "threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_results_come_in_the_order_of_the_trials_and_each_is_on_record(
    healkit: Healkit, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # IPython, in a test before this one, may have left a __main__ that multiprocessing cannot do with.
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    executor: Executor = ThreadPoolExecutor(2)
    if kind == "processes":
        executor = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    code = "import random\ndef f(n):\n    print('so far')\n    return [2 * n, random.random()]\n"
    trials = [Trial(code, {"n": n}, "f") for n in (*range(7), None)]
    with executor:
        *results, failed = healkit.trials(trials, executor=None if kind == "here" else executor)
    assert [result.value[0] for result in results] == [2 * n for n in range(7)]
    assert len({result.value[1] for result in results}) == 7  # random numbers differ from trial to trial
    assert {result.printed for result in (*results, failed)} == {"so far\n"}
    assert healkit.log.by_trace(failed.trace_id).last_output == "so far\n"
    rows = healkit.log.query(status="SUCCESS").rows
    assert {row.trace_id for row in rows} == {result.trace_id for result in results}
    assert {row.origin for row in rows} == {"trial"}
    assert {row.isolation for row in rows} <= {"namespaces", "landlock"}
    assert healkit.trials([]) == []


#: The body of `f` → its failure's code, and its error's name.
ENDINGS = {
    "return {}['x']": ("TOOL_EXCEPTION", "KeyError"),
    "while True:\n        pass": ("TOOL_TIMEOUT", "TimeoutError"),
    "return sum(range(10**11))": ("TOOL_TIMEOUT", "TimeoutError"),
    "os.closerange(3, 64)\n    sum(range(10**11))": ("TOOL_TIMEOUT", "TimeoutError"),
    "os._exit(4)": ("TOOL_EXITED", "ProcessExited"),
    "ctypes.string_at(0)": ("TOOL_CRASHED", "SIGSEGV"),
    "held = []\n    while True:\n        held.append(bytearray(10**7))": (
        "TOOL_OUT_OF_MEMORY",
        "MemoryError",
    ),
    "return 'x' * 10**8": ("TOOL_RESULT_TOO_LARGE", "ResultTooLarge"),
    "while True:\n        print('x' * 10**6)": ("TOOL_OUTPUT_LIMIT", "OutputLimit"),
    "return mcp.host.anything()": ("TOOL_EXCEPTION", "AttributeError"),
}


@pytest.mark.slow
@pytest.mark.requirement("WORK-6", "WORK-4")
def test_every_ending_has_a_code_and_the_line_where_it_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("healkit.core.workers.worker.GRACE_S", 5)  # in which a busy machine writes a stack
    config = Config(memory_mb=128, start_timeout_s=30)
    with Healkit(tmp_path / "x.db", config=config) as healkit:
        results = healkit.trials(
            # What is to be late is so soon; the others get the time that a busy machine needs for them.
            Trial(f"import ctypes, os\ndef f():\n    {body}\n", {}, "f", timeout_s=0.5 if late else 30.0)
            for body, late in ((body, ending == "TOOL_TIMEOUT") for body, (ending, _) in ENDINGS.items())
        )
    for result, (code, (ending, ename)) in zip(results, ENDINGS.items(), strict=True):
        assert result.failure is not None, code
        assert (result.failure.code, result.failure.ename) == (ending, ename), code
        if ending in {"TOOL_EXCEPTION", "TOOL_TIMEOUT", "TOOL_CRASHED"}:
            assert result.failure.tool_frame is not None, code
            assert result.failure.tool_frame.filename == "<f@0>"


@pytest.mark.requirement("WORK-6", "WORK-2")
@pytest.mark.parametrize("tier", ["namespaces", pytest.param("landlock", marks=pytest.mark.slow)])
def test_trials_are_restricted_and_share_nothing_with_each_other(tmp_path: Path, tier: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the host's")
    attempts = [
        f"def f():\n    return open({str(secret)!r}).read()\n",
        "import socket\ndef f():\n    socket.socket()\n",
        "import os\ndef f():\n    os.fork()\n",
        "import os\ndef f():\n    os.kill(os.getppid(), 9)\n",
        "import os\ndef f():\n    os.write(3, b'x')\n    raise PermissionError\n",
    ]
    leak = "import os, builtins\ndef f():\n    seen = [os.listdir('.'), hasattr(builtins, 'leak')]\n    open('leak', 'w').write('x')\n    builtins.leak = True\n    return seen\n"
    with Healkit(tmp_path / "x.db", config=Config(isolation=tier, start_timeout_s=30)) as healkit:
        denied = healkit.trials([Trial(code, {}, "f") for code in attempts], parallel=1)
        assert [r.failure.ename in {"FileNotFoundError", "PermissionError", "OSError"} for r in denied] == [
            True
        ] * 5
        clean = healkit.trials([Trial(leak, {}, "f")] * 3, parallel=1)
        assert [r.value for r in clean] == [[[], False]] * 3


@pytest.mark.requirement("WORK-6")
def test_what_compiling_says_reaches_each_trial_of_the_code(healkit: Healkit) -> None:
    odd, wrong, long = (
        "def f(n):\n    return n is 3\n",
        "def f(n:\n    return n\n",
        f"def f(n):\n    return n\n#{'x' * 200_000}",
    )
    codes = [odd, wrong, long, DOUBLE.replace("double", "f")]
    results = healkit.trials([Trial(code, {"n": n}, "f") for code in codes for n in range(4)], parallel=1)
    said, refused, whole, doubled = (results[first : first + 4] for first in range(0, 16, 4))
    assert all(result.ok and "SyntaxWarning" in result.printed for result in said)
    assert {result.failure.ename for result in refused if result.failure} == {
        "healkit.errors.CodeDoesNotParse"
    }
    assert not any(result.ok for result in refused)
    assert [result.value for result in whole] == [0, 1, 2, 3]
    assert [result.value for result in doubled] == [0, 2, 4, 6]


def test_trial_servers_wait_for_more_trials_and_a_dead_one_is_replaced(healkit: Healkit) -> None:
    healkit.trials([(DOUBLE, {"n": n}) for n in range(8)], parallel=2)
    first = trial_servers()
    assert [result.value for result in healkit.trials([(DOUBLE, {"n": 4})] * 8, parallel=2)] == [8] * 8
    assert set(trial_servers()) == set(first)
    for server in first:
        server.kill()
    psutil.wait_procs(first, timeout=10)
    assert [result.value for result in healkit.trials([(DOUBLE, {"n": 5})] * 8, parallel=2)] == [10] * 8
    assert not set(trial_servers()) & set(first)
    background.shutdown()
    assert trial_servers() == []


@pytest.mark.requirement("WORK-12")
@pytest.mark.parametrize("tier", ["namespaces", pytest.param("landlock", marks=pytest.mark.slow)])
def test_the_subprocess_mode_runs_the_same_tool_under_the_same_restrictions(
    tmp_path: Path, tier: str
) -> None:
    with Healkit(tmp_path / "x.db", config=Config(isolation=tier, start_timeout_s=30)) as healkit:
        healkit.provide(lambda: "from the host", "hello")
        healkit.vault.add(
            "tool",
            "import sys\ndef tool():\n    print('printed')\n"
            "    return ['ipykernel' in sys.modules, mcp.host.hello()]\n",
        )
        execution = healkit.execute("tool", mode="subprocess")
        assert execution.value == [False, "from the host"]
        assert execution.outputs == [{"output_type": "stream", "name": "stdout", "text": "printed\n"}]
        assert execution.isolation == tier
        assert [call.tool for call in execution.calls] == ["hello"]
        healkit.vault.add("thief", "def thief():\n    return open('/etc/passwd').read()\n")
        assert healkit.execute("thief", mode="subprocess").failure.ename in {
            "FileNotFoundError",
            "PermissionError",
        }
        healkit.vault.add("hang", "def hang():\n    return sum(range(10**11))\n")
        hung = healkit.execute("hang", mode="subprocess", timeout=1)
        assert hung.failure.code == "TOOL_TIMEOUT"
        assert hung.failure.tool_frame.lineno == 2


@pytest.mark.requirement("WORK-12")
def test_an_unknown_mode_is_refused_by_name(healkit: Healkit) -> None:
    with pytest.raises(ConfigError, match="worker, subprocess"):
        healkit.execute("x", mode="thread")
    assert os.getpid()


def test_a_call_is_evaluated_beside_code_that_need_not_be_a_tool(healkit: Healkit) -> None:
    code = (
        "class Node:\n    def __init__(self, n): self.n = n\ndef a(n): return n.n + 1\ndef b(n): return n\n"
    )
    results = healkit.trials(
        [
            Trial(code, name="f", call="node = Node(1)\na(node)"),
            Trial(code, name="f", call="b(a)(1)"),
            Trial(code, name="f", call="node = Node(1)"),
            Trial(code, name="f", call="node = ("),
            Trial(code, name="f"),
        ]
    )
    assert [result.value for result in results[:3]] == [2, None, None]
    assert results[1].failure.ename == "AttributeError"
    assert results[2].ok
    assert [result.failure.ename for result in results[3:]] == [
        "SyntaxError",
        "healkit.errors.ToolShapeError",
    ]


def test_a_trials_duration_is_wall_time_if_it_waited_and_else_processor_time(
    healkit: Healkit,
) -> None:
    computing = """import os, time
def f():
    began = time.process_time()
    while time.process_time() - began < 0.1:
        pass
    return time.process_time() - began
"""
    waits = "import time\ndef f():\n    time.sleep(0.2)\n"
    busy, waiting, failing = healkit.trials(
        [(computing, {}), (waits, {}), ("def f():\n    return 1 / 0\n", {})]
    )
    assert busy.value <= busy.took_s <= busy.duration_ms / 1000
    assert 0.2 <= waiting.took_s <= waiting.duration_ms / 1000
    assert 0.0 < failing.took_s <= failing.duration_ms / 1000


#: Arguments that hold more than plain JSON are taken and given as they are.
DOUBLED = "def doubled(df):\n    df['a'] = df['a'] * 2\n    return df\n"
FRAME = pd.DataFrame({"a": [1, 2], "s": ["x", "y"]})


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
@pytest.mark.parametrize("away", [False, True])
def test_a_frame_arrives_at_a_trial_and_comes_back(healkit: Healkit, away: bool) -> None:
    """DATA-5: the result is a frame with its dtypes, what was passed is unchanged, and the log can be read."""
    with ThreadPoolExecutor(1) as threads:
        executor = threads if away else None
        results = healkit.trials([Trial(DOUBLED, {"df": FRAME}, "doubled")] * 2, executor=executor)
    for result in results:
        assert result.failure is None
        pd.testing.assert_frame_equal(result.value, FRAME.assign(a=[2, 4]))
        assert result.outline == "DataFrame"
    assert FRAME["a"].tolist() == [1, 2]
    row = healkit.log.query(origin="trial").rows[0]
    assert '"columns": ["a", "s"]' in (row.result_summary or "").replace('":[', '": [').replace('","', '", "')


def test_plain_arguments_give_json_unless_exact_values_are_asked_for(healkit: Healkit) -> None:
    code = "def pair(x):\n    return (x, {1: 2})\n"
    plain, exact, given = healkit.trials(
        [
            Trial(code, {"x": 1}, "pair"),
            Trial(code, {"x": 1}, "pair", exact=True),
            Trial(code, {"x": (1,)}, "pair"),
        ]
    )
    assert plain.value == [1, {"1": 2}]
    assert exact.value == (1, {1: 2})
    assert given.value == ((1,), {1: 2})
    assert (plain.outline, exact.outline) == ("tuple[dict[int]]", "tuple[dict[int]]")

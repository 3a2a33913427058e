"""Habits of published code: loops, processes, threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from healkit import Execution, Healkit
from healkit.config import Mode
from healkit.runtime.trials import Trial

Failed = Callable[..., Execution]

_F = "import asyncio\nasync def f():\n    return 5\n"
LOOPS = {
    "run": "def t():\n    return asyncio.run(f())",
    "get_event_loop": "def t():\n    return asyncio.get_event_loop().run_until_complete(f())",
    "new_event_loop": "def t():\n    return asyncio.new_event_loop().run_until_complete(f())",
    "run, then get_event_loop": "def t():\n    asyncio.run(f())\n    return asyncio.get_event_loop().run_until_complete(f())",
    "run inside run": "async def g():\n    return asyncio.run(f())\ndef t():\n    return asyncio.run(g())",
    "run_until_complete inside": "async def t():\n    return asyncio.get_event_loop().run_until_complete(f())",
    "gather inside": "async def t():\n    def ask():\n        return asyncio.run(f())\n    return (await asyncio.gather(f(), f()))[0] + ask() - 5",
}


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("mode", ["worker", "subprocess"])
def test_every_way_to_run_a_coroutine_gives_the_same_answer(healkit: Healkit, code: str, mode: Mode) -> None:
    healkit.vault.add("t", _F + code)
    assert healkit.execute("t", mode=mode).value == 5


def test_a_loop_of_a_tool_works_in_a_trial_as_in_a_run(healkit: Healkit) -> None:
    results = healkit.trials([Trial(_F + code, name="t") for code in LOOPS.values()])
    assert [result.value for result in results] == [5] * len(LOOPS)


PROCESSES = [
    "import multiprocessing\ndef t():\n    with multiprocessing.Pool(2) as pool:\n        return pool.map(abs, [1])",
    "from concurrent.futures import ProcessPoolExecutor\ndef t():\n    with ProcessPoolExecutor() as pool:\n        return list(pool.map(abs, [1]))",
    "import multiprocessing\ndef t():\n    multiprocessing.Process(target=print).start()",
    "import subprocess\ndef t():\n    return subprocess.run(['ls']).returncode",
    "import os\ndef t():\n    return os.fork()",
]


@pytest.mark.parametrize("code", PROCESSES, ids=range(len(PROCESSES)))
def test_starting_a_process_is_explained_with_what_works(failed: Failed, code: str) -> None:
    execution = failed(code, "t")
    text = str(execution.explain())
    assert "A worker starts no processes; threads work." in text
    assert "ThreadPoolExecutor" in text


def test_a_file_that_may_not_be_read_is_not_told_as_a_process(failed: Failed) -> None:
    execution = failed("def t():\n    return open('/x.txt', 'w')", "t")
    assert "process" not in str(execution.explain()).split("Why")[0]


def test_a_thread_that_ends_soon_is_waited_for(healkit: Healkit) -> None:
    code = "import threading, time\ndef t():\n    def work():\n        time.sleep(0.2)\n        print('late')\n    threading.Thread(target=work).start()\n    return 1"
    healkit.vault.add("t", code)
    execution = healkit.execute("t")
    assert (execution.value, execution.warnings) == (1, [])
    assert [output.get("text") for output in execution.outputs] == ["late\n"]


def test_a_thread_that_goes_on_is_named(healkit: Healkit) -> None:
    code = "import threading\ndef t():\n    threading.Thread(target=threading.Event().wait, name='slow-1').start()\n    return 1"
    healkit.vault.add("t", code)
    execution = healkit.execute("t")
    assert execution.value == 1
    assert "its thread slow-1 still ran" in execution.warnings[0]
    assert "slow-1" in execution.to_text()


def test_a_figure_is_shown_and_the_result_says_so(healkit: Healkit) -> None:
    healkit.vault.add(
        "t",
        "import matplotlib.pyplot as plt\ndef t():\n    figure, axes = plt.subplots()\n    axes.plot([1, 2])\n    return figure",
    )
    execution = healkit.execute("t")
    assert execution.value == "<Figure 6.4 × 4.8 inches, shown>"
    assert [sorted(output["data"]) for output in execution.outputs] == [["image/png", "text/plain"]]
    assert "the figure was shown" in execution.conversions[0]


def test_a_model_crosses_as_a_data_class_does(healkit: Healkit) -> None:
    code = "import pydantic\nclass M(pydantic.BaseModel):\n    a: int\n    b: list[int] = []\n    def twice(self): return 2 * self.a\ndef t():\n    return [M(a=1)]"
    healkit.vault.add("t", code)
    execution = healkit.execute("t")
    assert execution.value == [{"a": 1, "b": []}]
    assert execution.conversions == ["result $[0]: M arrives as a dict of its fields"]


@pytest.mark.parametrize(
    ("made", "kind"),
    [("(n for n in [1])", "generator"), ("map(str, [1])", "map"), ("{'a': 1}.keys()", "dict_keys"), ("zip([1], [2])", "zip")],
)  # fmt: skip
def test_a_result_that_makes_its_items_late_is_refused_with_the_code_to_write(
    failed: Failed, made: str, kind: str
) -> None:
    execution = failed(f"def t():\n    return {made}", "t")
    assert execution.failure is not None
    assert execution.failure.evalue == f"the result is a {kind}, which cannot leave the worker as it is"
    assert "return list(…)" in execution.failure.hint
    assert "list(…)" in str(execution.explain())

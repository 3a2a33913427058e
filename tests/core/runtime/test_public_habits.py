"""Habits of published code: loops, processes, classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from healkit import Execution, Healkit
from healkit.errors import ToolShapeError
from healkit.parts.trials.trials import Trial

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


def test_every_way_to_run_a_coroutine_gives_the_same_answer(healkit: Healkit) -> None:
    for name, code in LOOPS.items():
        tool = name.replace(",", "").replace(" ", "_")
        healkit.vault.add(tool, (_F + code).replace("def t()", f"def {tool}()"))
        assert healkit.execute_tool(tool) == 5
    results = healkit.trials([Trial(_F + code, name="t") for code in LOOPS.values()])
    assert [result.value for result in results] == [5] * len(LOOPS)


@pytest.mark.parametrize(
    "code",
    [
        "import multiprocessing\ndef t():\n    with multiprocessing.Pool(2) as pool:\n        return pool.map(abs, [1])",
        "from concurrent.futures import ProcessPoolExecutor\ndef t():\n    with ProcessPoolExecutor() as pool:\n        return list(pool.map(abs, [1]))",
        "import subprocess\ndef t():\n    return subprocess.run(['ls']).returncode",
    ],
    ids=["a pool", "an executor", "a program"],
)
def test_starting_a_process_is_explained_with_what_works(failed: Failed, code: str) -> None:
    text = str(failed(code, "t").explain())
    assert "A worker cannot start processes, but threads work." in text
    assert "ThreadPoolExecutor" in text


def test_a_thread_that_ends_soon_is_waited_for_and_one_that_goes_on_is_named(healkit: Healkit) -> None:
    code = (
        "import threading, time\ndef t(ends):\n    def work():\n        time.sleep(0.2)\n        print('late')\n"
        "    threading.Thread(target=work if ends else threading.Event().wait, name='slow-1').start()\n    return 1"
    )
    healkit.vault.add("t", code)
    ended, still = (healkit.execute("t", arguments={"ends": ends}) for ends in (True, False))
    assert (ended.value, ended.warnings) == (1, [])
    assert [output.get("text") for output in ended.outputs] == ["late\n"]
    assert still.value == 1
    assert "its thread slow-1 still ran" in still.warnings[0]
    assert "slow-1" in still.to_text()


#: What a tool gives → what its caller gets, and what is said of it; a failure's hint where it gets nothing.
GIVEN = {
    "figure": ("plt.subplots()[0]", "<Figure 6.4 × 4.8 inches, shown>", "the figure was shown"),
    "model": ("[M(a=1)]", [{"a": 1, "b": []}], "result $[0]: M arrives as a dict of its fields"),
    "dict_keys": ("{'a': 1}.keys()", None, "return list(…)"),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_what_cannot_cross_as_it_is_says_what_became_of_it(healkit: Healkit, kind: str) -> None:
    made, value, said = GIVEN[kind]
    model = "class M(pydantic.BaseModel):\n    a: int\n    b: list[int] = []\n"
    library = "matplotlib.pyplot as plt" if kind == "figure" else "pydantic"
    healkit.vault.add("t", f"import {library}\n{model * (kind == 'model')}def t():\n    return {made}")
    execution = healkit.execute("t")
    assert execution.value == value
    assert [sorted(output["data"]) for output in execution.outputs] == [["image/png", "text/plain"]] * (
        kind == "figure"
    )
    if execution.failure is None:
        assert said in execution.conversions[0]
    else:
        assert f"the result is a {kind}, which cannot leave the worker" in execution.failure.evalue
        assert said in execution.failure.hint


_RUN = "def helper(n):\n    return n + 1\n\nclass Job{base}:\n    def run(self, arguments):\n        return helper(arguments['n'])\n"
#: Classes as they are written for other hosts, with and without a base.
CLASSES = {
    "chameleon": "from base import ChameleonTool\n" + _RUN.format(base="(ChameleonTool)"),
    "any base": "import base\n" + _RUN.format(base="(base.ChameleonTool)"),
    "plain": _RUN.format(base=""),
}


@pytest.mark.requirement("VAULT-6")
@pytest.mark.parametrize("code", CLASSES.values(), ids=CLASSES)
def test_a_class_with_run_is_a_tool_unchanged(healkit: Healkit, code: str) -> None:
    """C5: `base` was not there, and a class without a base named `…Tool` was none."""
    healkit.vault.add("job", code)
    assert healkit.execute_tool("job", arguments={"n": 2}) == 3
    assert healkit.vault.get("job").input_schema == {"type": "object"}


@pytest.mark.requirement("VAULT-6")
def test_a_module_base_of_the_users_own_comes_first(healkit: Healkit, tmp_path: Path) -> None:
    """C5: healkit's is offered where no other is found."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "base.py").write_text("class ChameleonTool:\n    mine = True\n")
    code = CLASSES["chameleon"].replace("helper(arguments['n'])", "self.mine")
    code = f"import sys\nsys.path.append({str(tmp_path / 'mine')!r})\n{code}"
    healkit.vault.add("job", code, grants={"read": tmp_path / "mine"})
    assert healkit.execute_tool("job") is True


@pytest.mark.requirement("VAULT-6")
def test_of_several_classes_with_run_none_is_guessed(healkit: Healkit) -> None:
    """C5: two classes that could be the tool are refused; an abstract one cannot be."""
    two = CLASSES["plain"] + "\nclass Other:\n    def run(self, arguments):\n        return 0\n"
    with pytest.raises(ToolShapeError, match="Job, Other all have run"):
        healkit.vault.add("job", two.replace("helper", "_helper"))
    abstract = two.replace("class Other:\n", "class Other:\n    @abc.abstractmethod\n")
    healkit.vault.add("job", f"import abc\n{abstract}")
    assert healkit.execute_tool("job", arguments={"n": 2}) == 3

"""Trial servers: as little as possible held, read ahead, lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial_server_samples import end_trial_servers, trial_servers

from healkit import Config, Healkit
from healkit.parts.trials.trials import Trial

LOADED = "import sys\ndef f():\n    return sorted({'asyncio', 'logging', 'random', 'threading'} & {*sys.modules})\n"


@pytest.fixture(autouse=True)
def fresh() -> None:
    """End the trial servers that have served other tests."""
    end_trial_servers()


def values(healkit: Healkit, *codes: str) -> list[object]:
    """Return what each code's `f` returns, one after the other in one trial server."""
    results = healkit.trials([Trial(code, {}, "f") for code in codes], parallel=1)
    assert [result.failure for result in results] == [None] * len(codes)
    return [result.value for result in results]


def test_a_trial_server_holds_no_module_that_resets_itself_after_a_fork(
    healkit: Healkit,
) -> None:
    assert values(healkit, LOADED) == [[]]


def test_standard_modules_that_code_names_are_imported_before_its_trial(healkit: Healkit) -> None:
    here = "import sys\ndef f():\n    here = {!r} in sys.modules\n    {}\n    return here\n"
    named = values(
        healkit,
        here.format("colorsys", "import os, colorsys as colours"),
        here.format("xml.dom.minidom", "from xml.dom.minidom import parseString"),
        here.format("asyncio", "async def g(): pass"),
        here.format("sqlite3", "'import sqlite3'"),
        here.format("numpy", "import numpy"),  # numpy and pandas are the host's own choice
        here.format("jinja2", "import jinja2"),
    )
    assert named == [True, True, True, False, True, False]


def test_no_program_and_no_test_of_the_standard_library_runs_in_a_trial_server(healkit: Healkit) -> None:
    dead = "def f():\n    if False:\n        import {}\n    return 1\n"
    programs = ("unittest.__main__", "asyncio.__main__", "ctypes.test", "this", "winreg", "os.nothing")
    assert values(healkit, *(dead.format(name) for name in programs)) == [1] * len(programs)
    first = trial_servers()
    assert values(healkit, LOADED)
    assert trial_servers() == first


def test_code_finds_the_real_ctypes_util(healkit: Healkit) -> None:
    code = "def f():\n    import ctypes.util\n    return [ctypes.util.__spec__.name, 'threading' in {*__import__('sys').modules}]\n"
    assert values(healkit, code) == [["ctypes.util", True]]
    healkit.vault.add("f", code)
    assert healkit.execute("f", mode="subprocess").value == ["ctypes.util", True]


@pytest.mark.slow
@pytest.mark.parametrize("preload", [("numpy",), ("numpy", "numpy.random")])
def test_numpys_random_numbers_differ_from_trial_to_trial(tmp_path: Path, preload: tuple[str, ...]) -> None:
    code = "import numpy\ndef f():\n    return numpy.random.random()\n"
    with Healkit(tmp_path / "x.db", config=Config(preload=preload, start_timeout_s=60)) as healkit:
        assert len({*values(healkit, *[code] * 3)}) == 3


def test_short_runs_one_after_the_other_do_not_start_a_trial_server_each(healkit: Healkit) -> None:
    for _ in range(12):
        assert values(healkit, "def f():\n    return 1\n") == [1]
        results = healkit.trials([Trial("def f():\n    return 2\n", {}, "f")] * 3, parallel=2)
        assert [result.value for result in results] == [2, 2, 2]
    assert len(trial_servers()) <= 2

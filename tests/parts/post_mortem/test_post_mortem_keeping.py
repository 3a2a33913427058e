"""Retained workers of failed runs: how many, and for how long."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import running
from programs import python
from trial_server_samples import worker_processes
from waiting import wait_until

from healkit import Config, Execution, Healkit
from healkit.core.runtime import background
from healkit.errors import PostMortemError, PostMortemGone


@pytest.mark.requirement("WORK-5")
@pytest.mark.parametrize("kept", [0, 1])
def test_a_bounded_number_is_kept_and_the_oldest_goes(tmp_path: Path, kept: int) -> None:
    config = Config.from_environment({**os.environ, "HEALKIT_POST_MORTEM_KEPT": str(kept)})
    with Healkit(tmp_path / "healkit.db", config=config) as healkit:
        healkit.vault.add("tool", "def tool(n):\n    return 1 / 0\n")
        first, second = (healkit.execute("tool", arguments={"n": n}) for n in range(2))
        why = "newer failures replaced it" if kept else "HEALKIT_POST_MORTEM_KEPT=0"
        with pytest.raises(PostMortemGone, match=why):
            first.post_mortem()
        if kept:
            assert second.post_mortem().eval("n").repr == "1"


@pytest.mark.slow
@pytest.mark.requirement("WORK-5")
def test_each_is_kept_for_a_bounded_time_that_a_question_renews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("healkit.parts.post_mortem.retained.KEPT_S", 1.0)
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("tool", "import os\n\ndef tool():\n    return 1 / 0\n")
        execution = healkit.execute("tool")
        asked = execution.post_mortem()
        for _ in range(3):
            assert asked.eval("__import__('time').sleep(0.5)").repr == "None"

        def gone() -> bool:
            return background.loop.submit(kept()).result() == []

        async def kept() -> list[Any]:
            return [
                one
                for pool in background._pools.values()
                for one in pool.retained._retained
                if one == execution.trace_id
            ]

        assert not gone()
        wait_until(gone)
        with pytest.raises(PostMortemGone, match=r"it was not used for 1 s"):
            asked.frames(), asked.locals()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def tool():\n    import os\n    os._exit(3)\n", "its process died"),
        pytest.param(
            "def tool():\n    sum(range(10**12))\n",
            "did not react to its timeout and was killed",
            marks=pytest.mark.slow,
        ),
        (
            "def tool():\n    return 'x' * 11 * 2**20\n",
            "the tool had already returned, so its frames no longer existed",
        ),
    ],
)
def test_a_run_that_was_killed_or_had_returned_says_why_it_cannot_be_asked(
    healkit: Healkit, code: str, reason: str
) -> None:
    healkit.vault.add("tool", code)
    with pytest.raises(PostMortemGone, match=reason) as raised:
        healkit.execute("tool", timeout=1).post_mortem()
    assert raised.value.code == "POST_MORTEM_GONE"


def test_a_run_in_a_plain_subprocess_and_a_success_say_so(healkit: Healkit) -> None:
    healkit.vault.add("tool", "def tool(n):\n    return 1 / n\n")
    with pytest.raises(PostMortemGone, match="plain subprocess"):
        healkit.execute("tool", arguments={"n": 0}, mode="subprocess").post_mortem()
    with pytest.raises(PostMortemError, match="did not fail"):
        healkit.execute("tool", arguments={"n": 1}).post_mortem()


@pytest.mark.requirement("WORK-5")
def test_a_retained_worker_that_is_killed_is_gone_with_a_clear_error(
    failed: Callable[..., Execution],
) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    with pytest.raises(PostMortemGone, match="ended"):
        asked.eval("__import__('os')._exit(1)")
    with pytest.raises(PostMortemGone, match="its process has ended"):
        asked.locals()


def test_it_can_be_let_go_before_its_time(failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    asked.close()
    asked.close()
    with pytest.raises(PostMortemGone, match="it was released"):
        asked.locals()


@pytest.mark.slow
def test_an_execution_read_back_from_the_log_can_be_asked_in_this_process_only(
    healkit: Healkit, failed: Callable[..., Execution]
) -> None:
    failed("def tool(n):\n    return 1 / n\n", n=0)
    found = healkit.last_error("tool")
    assert found.post_mortem().eval("n").repr == "0"
    other = f"""
from healkit import Healkit
from healkit.errors import PostMortemGone
try:
    Healkit({str(healkit.path)!r}).last_error("tool").post_mortem()
except PostMortemGone as error:
    print(error)
"""
    done = python(other)
    assert "another process ran it" in done.stdout


@pytest.mark.slow
def test_threads_that_a_tool_left_running_are_stopped_between_questions(
    failed: Callable[..., Execution],
) -> None:
    code = """
import threading

def burn():
    while True:
        count[0] += 1
        print("still here")

def tool():
    global count
    count = [0]
    for _ in range(4):
        threading.Thread(target=burn, daemon=True).start()
    return 1 / 0
"""
    # By now there is a fork server, or there never will be.
    failed("def tool():\n    return 1 / 0\n", "first")
    wait_until(lambda: background.loop.submit(_preloaded()).result())
    asked = failed(code).post_mortem()
    pid = int(asked.eval("__import__('os').getpid()").repr)
    below = running(psutil.Process().children(recursive=True))
    stopped = [process for process in below if process.status() == psutil.STATUS_STOPPED]
    assert stopped
    assert pid > 0
    before = sum(sum(p.cpu_times()[:2]) for p in stopped)
    threading.Event().wait(0.3)
    assert sum(sum(p.cpu_times()[:2]) for p in stopped) == before
    assert asked.eval("count[0] > 0").repr == "True"


async def _preloaded() -> bool:
    return all(one.done() for pool in background._pools.values() for one in pool._fork_servers.values())


@pytest.mark.requirement("WORK-5")
def test_nothing_is_left_after_a_shutdown(healkit: Healkit, failed: Callable[..., Execution]) -> None:
    asked = failed("def tool():\n    return 1 / 0\n").post_mortem()
    attached = healkit.execute("tool").post_mortem()
    file = attached.attach()
    assert file.exists()
    assert worker_processes()
    background.shutdown()
    assert not file.exists()
    assert worker_processes() == []
    for one in (asked, attached):
        with pytest.raises(PostMortemGone, match="shut down"):
            one.locals()

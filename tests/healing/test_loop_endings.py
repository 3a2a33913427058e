"""How a healing ends before it has found anything: the policy, Stop, the budget, a lost worker, a wrong wish."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import psutil
import pytest
from healing_samples import BROKEN, MENDED, WRONG, Idea, events
from trial_server_samples import children_of_trial_servers, trial_servers
from waiting import wait_until

from healkit import Healkit
from healkit.contracts.runs import PolicyDefaults
from healkit.errors import ConfigError, HealError
from healkit.tracing.reader import read_run


def test_a_healthy_tool_is_left_alone(healing: Healkit) -> None:
    healing.vault.patch("ratio", MENDED)
    idea = Idea(WRONG)
    report = healing.heal("ratio", advisors=[idea], auto=True)
    assert (report.outcome, report.ok, report.attempts) == ("healthy", True, ())
    assert idea.cases == []


def test_a_failure_that_no_code_fixes_ends_at_once(healing: Healkit) -> None:
    healing.vault.add("slow", "import time\ndef slow():\n    time.sleep(60)\n")
    with pytest.raises(HealError, match="Nothing says that slow@1 fails"):
        healing.heal("slow")
    with pytest.raises(HealError, match="no failure of 'slow'"):
        healing.heal("slow", log_id=1)


def test_a_bad_request_is_refused_before_anything_runs(healing: Healkit) -> None:
    rows = len(healing.log.query().rows)
    with pytest.raises(ConfigError, match=r"'serch'\. Did you mean 'search'"):
        healing.heal("ratio", advisors=["serch"])
    with pytest.raises(ConfigError, match="budget_s=0"):
        healing.heal("ratio", budget_s=0)
    assert len(healing.log.query().rows) == rows
    assert not list(healing.runs_dir.glob("*"))


@pytest.mark.requirement("RUN-6", "RUN-3")
def test_the_policy_halts_a_repeating_advisor(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(*[WRONG] * 9, author="model")], auto=True)
    assert report.outcome == "halted"
    assert len(report.attempts) == 3
    assert "policy_halt" in events(report)
    (halt,) = [event for event in read_run(report.folder).events if event.event_type == "policy_halt"]
    assert halt.error is not None
    assert (halt.error.error_code, halt.error.details["rule"], halt.error.details["threshold"]) == (
        "POLICY_HALT",
        "same_state",
        2,
    )


@pytest.mark.requirement("RUN-6")
def test_the_caps_of_a_healing_can_be_given(healing: Healkit) -> None:
    ideas = [BROKEN.replace("a / b", f"a / b - a / b + {n}") for n in range(9)]
    report = healing.heal("ratio", advisors=[Idea(*ideas)], policy=PolicyDefaults(max_steps=4))
    assert (report.outcome, len(report.attempts)) == ("halted", 3)
    # The failure was ZeroDivisionError each time, but a rule's different ideas are no loop.
    assert healing.heal("ratio", advisors=[Idea(*ideas)]).outcome == "not_cured"
    looping = healing.heal("ratio", advisors=[Idea(*ideas, author="model")])
    assert looping.outcome == "halted"
    assert "same error" in looping.reason


def kill_trial_server_at_work() -> int | None:
    """Kill a trial server with a trial under way, and not the sandbox around it; its process id."""
    with contextlib.suppress(psutil.NoSuchProcess):
        at_work = {child.ppid() for child in children_of_trial_servers()}
        for process in trial_servers():
            if process.pid in at_work:
                process.kill()
                return process.pid
    return None


def stop_at_work(stop: threading.Event) -> None:
    """Stop as soon as a trial is under way."""

    def wait_and_stop() -> None:
        wait_until(children_of_trial_servers)
        stop.set()

    threading.Thread(target=wait_and_stop, daemon=True).start()


@pytest.mark.slow
@pytest.mark.requirement("RUN-4")
def test_a_lost_worker_is_retried_but_a_wrong_patch_is_not(healing: Healkit) -> None:
    slow = MENDED.replace("def ratio(a, b):\n", "import time\ndef ratio(a, b):\n    time.sleep(0.4)\n")
    killed: list[int] = []
    killer = threading.Thread(
        target=lambda: killed.append(wait_until(kill_trial_server_at_work)), daemon=True
    )

    def kill_the_first(_: Any, __: Any) -> None:
        if not killer.ident:
            killer.start()

    report = healing.heal("ratio", advisors=[Idea(slow)], auto=True, before_patch=kill_the_first)
    assert killed
    assert report.outcome == "kept", report
    assert {"retry_scheduled", "backoff_applied"} <= set(events(report))


def test_stop_ends_it_and_nothing_is_changed(healing: Healkit) -> None:
    hang = "import time\ndef ratio(a, b):\n    time.sleep(600)\n"
    stop = threading.Event()
    report = healing.heal(
        "ratio",
        advisors=[Idea(hang, MENDED)],
        auto=True,
        stop=stop,
        before_patch=lambda *_: stop_at_work(stop),
    )
    assert report.outcome == "stopped"
    assert healing.vault.get("ratio").revision == 1
    assert events(report)[-1] == "run_finished"


@pytest.mark.slow
def test_a_spent_budget_keeps_the_results(healing: Healkit) -> None:
    hang = "import time\ndef ratio(a, b):\n    time.sleep(30)\n"
    report = healing.heal("ratio", advisors=[Idea(hang)], auto=True, budget_s=1.5)
    assert report.outcome == "not_cured"
    assert healing.vault.get("ratio").revision == 1


def test_a_failing_advisor_is_noted_and_the_next_one_asked(healing: Healkit) -> None:
    class Failing(Idea):
        name = "failing"

        def propose(self, case: Any, bench: Any) -> Any:
            raise HealError("Nobody is at home.", hint="Ask another.")

    report = healing.heal("ratio", advisors=[Failing(), Idea(MENDED)], auto=True)
    assert report.outcome == "kept"
    assert report.notes == ("failing: Nobody is at home. Ask another.",)


@pytest.mark.slow
def test_stop_ends_a_validation_in_a_worker(healing: Healkit) -> None:
    code = "def share(a, b):\n    return mcp.vault.ratio(a=a, b=b) + extra\n"
    healing.vault.add("share", code, examples=[{"arguments": {"a": 6, "b": 3}, "result": 2.0}])
    healing.execute("share", arguments={"a": 6, "b": 3})
    stop = threading.Event()
    hang = Idea("import time\ndef share(a, b):\n    mcp\n    time.sleep(60)\n")
    report = healing.heal(
        "share", advisors=[hang], stop=stop, before_patch=lambda *_: threading.Timer(1.0, stop.set).start()
    )
    assert report.outcome == "stopped"
    assert report.duration_s < 25

"""Endings of a healing before it has found anything."""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
from collections.abc import Generator
from typing import Any

import psutil
import pytest
from healing_samples import BROKEN, FIXED, STEP, STEP_EXAMPLES, WRONG, Idea, events
from trial_server_samples import children_of_trial_servers, trial_servers
from waiting import wait_until

from healkit import Healkit, hooks
from healkit.errors import ConfigError, HealError
from healkit.parts.heal.advisor import Case, Workbench
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.runs.contract import PolicyDefaults
from healkit.parts.runs.reader import read_run


def test_a_healthy_tool_is_left_alone(healing: Healkit) -> None:
    healing.vault.patch("ratio", FIXED)
    idea = Idea(WRONG)
    report = healing.heal("ratio", advisors=[idea], auto=True)
    assert (report.outcome, report.ok, report.attempts) == ("healthy", True, ())
    assert idea.cases == []


def test_a_failure_that_no_code_fixes_ends_at_once(healing: Healkit) -> None:
    healing.vault.add("slow", "import time\ndef slow():\n    time.sleep(60)\n")
    with pytest.raises(HealError, match="There is no failure of slow v1 on record"):
        healing.heal("slow")
    with pytest.raises(HealError, match="not a failure of 'slow'"):
        healing.heal("slow", log_id=1)


def test_a_bad_request_is_refused_before_anything_runs(healing: Healkit) -> None:
    rows = len(healing.log.query().rows)
    with pytest.raises(ConfigError, match=r"'serch'\. Did you mean 'search'"):
        healing.heal("ratio", advisors=["serch"])
    with pytest.raises(ConfigError, match="budget_s=0"):
        healing.heal("ratio", budget_s=0)
    assert len(healing.log.query().rows) == rows
    assert not list(healing.runs_dir.glob("*"))


ODD = "def odd(n):\n    total = n\n    return total\n"
ODD_EXAMPLES = [{"arguments": {"n": n}, "result": result} for n, result in [(1, 7), (2, 19), (3, 5)]]


@pytest.mark.parametrize(
    ("budget_s", "said"),
    [
        (1e-9, r"nothing was tried in 1e-09 s, budget used up\."),
        (0.4, r"[\d,]+ candidates? in 0\.4 s, budget used up\."),
    ],
    ids=["nothing tried", "budget spent"],
)
def test_a_spent_budget_says_how_far_it_got(healing: Healkit, budget_s: float, said: str) -> None:
    """H9: the reason tells a budget that was too small from a search that has ended, and names what fails."""
    healing.vault.add("odd", ODD, examples=ODD_EXAMPLES)
    report = healing.heal("odd", advisors=["search"], budget_s=budget_s)
    assert report.outcome == "not_cured"
    assert re.search(said, report.reason)
    assert "Still failing: the example (n=1): gives 1, but 7 is right." in report.reason
    assert report.reason.endswith("Raise it: budget_s=….")


def test_a_healing_without_a_proposal_says_that_nothing_was_tried(healing: Healkit) -> None:
    """H9: the reason distinguishes an advisor without a proposal from a search that has ended."""
    report = healing.heal("ratio", advisors=[Idea()])
    assert report.reason == (
        "No fix found: no advisor had a patch. Still failing: the example (a=1, b=0): raises ZeroDivisionError: "
        "division by zero. Also use the search, edit the code, or ask a model."
    )


@pytest.mark.requirement("HEAL-3")
def test_patches_that_were_not_compared_are_unverified(healing: Healkit) -> None:
    """H10: with the budget spent before plausible patches were compared, the first one was called fixed."""
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    idea = Idea(STEP.replace("> 10", "> 3"), STEP.replace("> 10", ">= 10"))
    said: list[str] = []
    report = healing.heal("step", advisors=[idea], auto=True, budget_s=1e-9, progress=said.append)
    assert "unverified: There was no time left" in said[-1]
    assert (report.outcome, report.verdict) == ("pending", "passes all checks, unverified")
    assert report.best is not None
    assert report.best.patch.doubt == "There was no time left to compare it with other patches."
    judged = [
        (event.step_id, event.metadata["verdict"])
        for event in read_run(report.folder).events
        if event.event_type == "proposal_accepted" and "verdict" in event.metadata
    ]
    assert [verdict for step, verdict in judged if step == report.best.step_id] == ["cured", "unproven"]


@pytest.mark.slow
@pytest.mark.requirement("HEAL-3")
def test_a_search_with_a_short_budget_claims_nothing(healing: Healkit) -> None:
    """H10: the search vouched for the first patch that passed, though time ended it after a few candidates."""
    code = "import time\n\n\ndef total(a, b):\n    time.sleep(0.1)\n    return a - b\n"
    examples = [{"arguments": {"a": a, "b": b}, "result": a + b} for a, b in [(2, 3), (4, 1), (7, 7)]]
    healing.vault.add("total", code, examples=examples)
    report = healing.heal("total", advisors=["search"], auto=True, budget_s=5)
    assert (report.outcome, report.verdict) == ("pending", "passes all checks, unverified"), str(report)
    assert report.best is not None
    assert "no time left" in report.best.patch.doubt


def test_advisors_with_nothing_left_show_the_nearest_patch(healing: Healkit) -> None:
    """H9: where nothing passes every check, the patch that passes most is shown, and what is still wrong."""
    healing.vault.add("odd", ODD, examples=ODD_EXAMPLES)
    half = ODD.replace("total = n", "total = 7 if n == 1 else n")
    report = healing.heal("odd", advisors=[Idea(ODD.replace("= n", "= -n"), half)])
    assert "No fix found: 2 candidates, nothing left to try." in report.reason
    assert report.nearest is not None
    assert (report.nearest.patch.code, report.nearest.passed, report.best) == (half, 1, None)
    assert "nearest: passes 1 of 3 checks" in str(report)
    assert "+    total = 7 if n == 1 else n" in str(report)
    assert "nearest: passes 1 of 3 checks" in report._repr_html_()


@pytest.mark.requirement("RUN-6", "RUN-3")
def test_the_policy_halts_a_repeating_advisor(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(*[WRONG] * 9, author="model")], auto=True)
    assert report.outcome == "halted"
    assert len(report.attempts) == 3
    assert "policy_halt" in events(report)
    (halt,) = [event for event in read_run(report.folder).events if event.event_type == "policy_halt"]
    assert halt.error is not None
    assert (
        halt.error.error_code,
        halt.metadata["policy"]["reason"],
        halt.metadata["policy"]["threshold"],
    ) == ("POLICY_HALT", "same_state_revisit", 2)


@pytest.mark.slow
@pytest.mark.requirement("RUN-6")
def test_the_caps_of_a_healing_can_be_given(healing: Healkit) -> None:
    ideas = [BROKEN.replace("a / b", f"a / b - a / b + {n}") for n in range(9)]
    report = healing.heal("ratio", advisors=[Idea(*ideas)], policy=PolicyDefaults(hard_cap_steps=4))
    assert (report.outcome, len(report.attempts)) == ("halted", 3)
    # Each failure was ZeroDivisionError, but a rule's different ideas do not count as a loop.
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
@pytest.mark.requirement("RUN-3", "RUN-4")
def test_a_lost_worker_is_retried_but_a_wrong_patch_is_not(healing: Healkit) -> None:
    slow = FIXED.replace("def ratio(a, b):\n", "import time\ndef ratio(a, b):\n    time.sleep(0.4)\n")
    killed: list[int] = []
    killer = threading.Thread(
        target=lambda: killed.append(wait_until(kill_trial_server_at_work)), daemon=True
    )

    def kill_the_first(_: Any, __: Any) -> None:
        if not killer.ident:
            killer.start()

    report = healing.heal("ratio", advisors=[Idea(slow, author="person")], before_patch=kill_the_first)
    assert killed
    assert report.outcome == "kept", report
    assert {"retry_scheduled", "backoff_applied"} <= set(events(report))
    lost = [
        event
        for event in read_run(report.folder).events
        if event.event_type in ("retry_scheduled", "backoff_applied")
    ]
    assert all(event.state_signature_before for event in lost)


def test_stop_ends_it_and_nothing_is_changed(healing: Healkit) -> None:
    hang = "import time\ndef ratio(a, b):\n    time.sleep(600)\n"
    stop = threading.Event()
    report = healing.heal(
        "ratio",
        advisors=[Idea(hang, FIXED)],
        auto=True,
        stop=stop,
        before_patch=lambda *_: stop_at_work(stop),
    )
    assert report.outcome == "stopped"
    assert healing.vault.get("ratio").revision == 1
    assert events(report)[-1] == "run_finished"


@pytest.mark.slow
def test_stop_ends_a_validation_in_a_worker(healing: Healkit) -> None:
    code = "def share(a, b):\n    return mcp.vault.ratio(a=a, b=b) + extra\n"
    healing.vault.add("share", code, examples=[{"arguments": {"a": 6, "b": 3}, "result": 2.0}])
    healing.execute("share", arguments={"a": 6, "b": 3})
    stop = threading.Event()
    hang = Idea("import time\ndef share(a, b):\n    mcp\n    time.sleep(60)\n")
    report = healing.heal(
        "share", advisors=[hang], stop=stop, before_patch=lambda *_: threading.Timer(0.5, stop.set).start()
    )
    assert report.outcome == "stopped"
    assert report.duration_s < 25


class Failing(Idea):
    """Advisor that raises once its ideas are used up, or at another place."""

    name = "failing"

    def __init__(self, *codes: str, at: str = "propose") -> None:
        super().__init__(*codes)
        self._at = at

    def listen(self, say: Any) -> None:
        if self._at == "listen":
            raise RecursionError("too deep")

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        yield from super().propose(case, bench)
        if self._at == "home":
            raise HealError("Nobody is at home.", hint="Ask another.")
        if self._at == "patch":
            yield None.code  # type: ignore[attr-defined]  # raises
        raise ZeroDivisionError("by\nzero")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("home", "Nobody is at home. Ask another."),
        ("listen", "This advisor failed with RecursionError: too deep"),
        ("propose", "This advisor failed with ZeroDivisionError"),
        ("patch", "This advisor failed with AttributeError"),
    ],
)
def test_an_advisor_that_raises_costs_itself_only(healing: Healkit, at: str, said: str) -> None:
    """R2: an exception of an advisor's own ended the healing, with no report."""
    report = healing.heal("ratio", advisors=[Failing(WRONG, at=at), Idea(FIXED)], auto=True)
    assert (report.outcome, report.ok) == ("kept", True)
    assert report.attempts[0].patch.code == FIXED
    (note,) = [note for note in report.notes if note.startswith("failing: ")]
    assert said in note
    assert "error_raised" in events(report)


@pytest.mark.slow
def test_an_advisor_that_cannot_be_made_costs_itself(healing: Healkit) -> None:
    """R2: another package's advisor that failed to load ended the healing."""

    class Broken:
        @staticmethod
        @hooks.hookimpl
        def advisors() -> dict[str, Any]:
            return {"absent": lambda _config: importlib.import_module("a_package_that_is_not_there")}

    hooks.plugins().register(Broken, name="broken")
    try:
        report = healing.heal("ratio", advisors=["absent", Idea(FIXED)], auto=True)
    finally:
        hooks.plugins().unregister(name="broken")
    assert report.ok
    assert any("absent: this advisor cannot be loaded: ModuleNotFoundError" in note for note in report.notes)


@pytest.mark.requirement("FACE-12")
def test_a_reason_that_quotes_a_message_ends_once(healing: Healkit) -> None:
    code = "def count(n):\n    raise ValueError('n is not allowed.')\n"
    healing.vault.add("count", code, examples=[{"arguments": {"n": 1}, "result": 7}])
    report = healing.heal("count", advisors=[Idea(code.replace("allowed", "permitted"))], budget_s=2.0)
    assert "raises ValueError: n is not allowed. " in report.reason

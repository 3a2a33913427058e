"""The healing loop from failure to revision, with advisors that have exactly the ideas they are given."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from healing_samples import BROKEN, EXAMPLES, MENDED, Idea

from healkit import Healkit
from healkit.contracts.events import EVENT_TYPES
from healkit.contracts.healing import Attempt
from healkit.contracts.runs import PolicyDefaults
from healkit.errors import ConfigError, HealError
from healkit.healing.person import PersonAdvisor
from healkit.healing.questions import Answer, Choice, Question, answer_of
from healkit.healing.report import HealReport
from healkit.tracing.reader import read_run

TEMPLATE = "healkit.workers.inside.trials"
WRONG = BROKEN.replace("a / b", "b / a")
SILENT = (
    "def ratio(a, b):\n    try:\n        return a / b\n    except ZeroDivisionError:\n        return None\n"
)


def events(report: HealReport) -> list[str]:
    """The types of its events; its record must be in order."""
    run = read_run(report.folder)
    assert run.problems == []
    return [event.event_type for event in run.events]


@pytest.mark.requirement("HEAL-1", "HEAL-2", "HEAL-3", "HEAL-4")
def test_a_cure_is_kept_with_auto_and_everything_about_it_is_known(healing: Healkit) -> None:
    idea = Idea(WRONG, MENDED)
    report = healing.heal("ratio", advisors=[idea], auto=True)
    assert (report.outcome, report.verdict, report.revision) == ("kept", "cured and regression-free", 2)
    assert healing.execute_tool("ratio", arguments={"a": 1, "b": 0}) == 0.0
    best, other = report.attempts
    assert (best.patch.code, best.passed, best.total) == (MENDED, 3, 3)
    assert best.diff.splitlines()[-2:] == [
        "-    return a / b  # how many times",
        "+    return a / b if b else 0.0  # how many times",
    ]
    assert (other.verdict, other.why) == (
        "not_cured",
        "the example (a=1, b=0): gives 0.0 where 0.0 is right" if False else other.why,
    )
    assert "the example (a=6, b=3): gives 0.5 where 2.0 is right" in other.why
    assert [attempt and attempt.verdict for attempt in idea.told] == ["not_cured", "cured"]
    assert report.cost == {"ideas": 2}
    revision = healing.vault.history("ratio")[-1]
    assert (revision.author, revision.reason) == ("rule", "Idea 2. [cured and regression-free]")
    failed = healing.log.query(tool="ratio", status="FAILURE").rows[-1]
    assert revision.motivating_log_id == failed.id
    assert healing.vault.blame("ratio").last_cured_by == 2
    text = str(report)
    assert "cured and regression-free" in text
    assert "+    return a / b if b else 0.0" in text
    assert report.run_id in text


def test_what_is_told_on_the_way_reads_as_sentences(tmp_path: Path) -> None:
    said: list[str] = []
    counted: list[tuple[str, int]] = []
    with Healkit(tmp_path / "healkit.db") as healkit:
        healkit.vault.add("ratio", BROKEN, examples=EXAMPLES[:1])
        report = healkit.heal(
            "ratio",
            advisors=[Idea(SILENT), Idea(MENDED)],
            progress=said.append,
            on_tried=lambda advisor, tried: counted.append((advisor, tried)),
        )
        alone = healkit.heal("ratio", advisors=[Idea(SILENT)], dry_run=True)
    assert "1 check, of which 1 fails as it is." in said
    assert "idea: Idea 1. Not cured (the example (a=1, b=0): gives None where 0.0 is right)." in said
    assert "idea: Idea 1. Cured and regression-free." in said
    assert counted == [("idea", 0), ("idea", 0)]
    assert "against 1 check;" in str(report)
    assert alone.reason == "The only patch that was proposed does not pass every check."


@pytest.mark.requirement("HEAL-4")
def test_without_consent_the_patch_waits_and_the_tool_is_what_it_was(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(MENDED)])
    assert report.outcome == "pending"
    assert healing.vault.get("ratio").revision == 1
    (request,) = healing.requests.pending()
    assert (request.id, request.code, request.verdict) == (report.request_id, MENDED, "cured")
    healing.requests.accept(request.id)
    assert healing.execute_tool("ratio", arguments={"a": 1, "b": 0}) == 0.0


@pytest.mark.requirement("HEAL-4")
def test_a_patch_that_was_declined_before_is_not_said_to_wait(healing: Healkit) -> None:
    first = healing.heal("ratio", advisors=[Idea(MENDED)])
    assert first.request_id is not None
    healing.requests.decline(first.request_id, "not like that")
    again = healing.heal("ratio", advisors=[Idea(MENDED)])
    assert (again.outcome, again.request_id) == ("declined", first.request_id)
    assert "declined before" in again.reason


@pytest.mark.requirement("HEAL-4")
@pytest.mark.parametrize(
    ("said", "outcome", "revision"), [(True, "kept", 2), (False, "declined", 1), (None, "pending", 1)]
)
def test_the_person_is_shown_the_patch_and_decides(
    healing: Healkit, said: bool | None, outcome: str, revision: int
) -> None:
    seen: list[Attempt] = []

    def confirm(attempt: Attempt) -> bool | None:
        seen.append(attempt)
        return said

    report = healing.heal("ratio", advisors=[Idea(MENDED)], confirm=confirm)
    assert (report.outcome, healing.vault.get("ratio").revision) == (outcome, revision)
    assert [attempt.patch.code for attempt in seen] == [MENDED]


KILLED_WHILE_ASKED = """
import os, signal, sys
from healing_samples import BROKEN, EXAMPLES, MENDED, Idea
from healkit import Healkit
healkit = Healkit(sys.argv[1])
healkit.vault.add("ratio", BROKEN, examples=EXAMPLES)
healkit.heal("ratio", advisors=[Idea(MENDED)], confirm=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_patch_about_which_somebody_was_being_asked_survives_a_kill(tmp_path: Path) -> None:
    database = tmp_path / "killed.db"
    command = [sys.executable, "-c", KILLED_WHILE_ASKED, str(database)]
    killed = subprocess.run(command, cwd=Path(__file__).parent, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    with Healkit(database) as healkit:
        (request,) = healkit.requests.pending()
        assert request.code == MENDED
        assert healkit.requests.accept(request.id).state == "accepted"
        assert healkit.vault.get("ratio").code == MENDED


def test_what_a_person_keeps_or_declines_is_their_decision_on_record(healing: Healkit) -> None:
    healing.heal("ratio", advisors=[Idea(WRONG, MENDED)], confirm=lambda _: False)
    healing.heal("ratio", advisors=[Idea(MENDED)], confirm=lambda _: True)
    assert healing.requests.pending() == []
    (declined,) = healing.requests.list()
    assert (declined.state, declined.decided_by) == ("declined", "person")
    assert healing.vault.get("ratio").code == MENDED


@pytest.mark.requirement("HEAL-3", "HEAL-4")
def test_auto_keeps_no_patch_that_is_only_silent(healing: Healkit) -> None:
    healing.vault.add("bare", BROKEN.replace("ratio", "bare"))
    healing.execute("bare", arguments={"a": 1, "b": 0})
    idea = Idea(SILENT.replace("ratio", "bare"))
    report = healing.heal("bare", advisors=[idea], auto=True)
    assert (report.outcome, report.verdict) == ("pending", "silenced only")
    assert healing.vault.get("bare").revision == 1


@pytest.mark.requirement("HEAL-3")
def test_a_patch_that_nobody_can_judge_is_called_unproven(healing: Healkit) -> None:
    healing.vault.add("bare", BROKEN.replace("ratio", "bare"))
    healing.execute("bare", arguments={"a": 1, "b": 0})
    report = healing.heal("bare", advisors=[Idea(MENDED.replace("ratio", "bare"))])
    assert report.verdict == "cured but unproven"


@pytest.mark.requirement("HEAL-1")
def test_a_recorded_run_that_passed_must_stay_what_it_was(healing: Healkit) -> None:
    healing.vault.add("bare", BROKEN.replace("ratio", "bare"))
    assert healing.execute("bare", arguments={"a": 8, "b": 2}).ok
    healing.execute("bare", arguments={"a": 1, "b": 0})
    always = "def bare(a, b):\n    return 4 if b == 3 else 0\n"
    report = healing.heal("bare", advisors=[Idea(always)])
    assert report.outcome == "not_cured"
    assert "the recorded run (a=8, b=2): gives 0 where 4.0 is right" in report.attempts[0].why


def test_a_value_that_the_tools_own_code_does_not_give_again_is_no_check(healing: Healkit) -> None:
    healing.vault.add("dice", "import random\ndef dice(n):\n    return [random.random(), 1 / n][0]\n")
    assert healing.execute("dice", arguments={"n": 1}).ok
    healing.execute("dice", arguments={"n": 0})
    report = healing.heal(
        "dice", advisors=[Idea("import random\ndef dice(n):\n    return random.random()\n")]
    )
    assert [check.origin for check in report.checks] == ["failing"]
    assert report.verdict == "cured but unproven"


@pytest.mark.requirement("HEAL-1")
def test_where_it_returns_what_is_wrong_its_recorded_values_count_for_nothing(healing: Healkit) -> None:
    healing.vault.add(
        "double", "def double(n):\n    return n + 2\n", examples=[{"arguments": {"n": 3}, "result": 6}]
    )
    assert healing.execute("double", arguments={"n": 10}).value == 12
    report = healing.heal("double", advisors=[Idea("def double(n):\n    return n * 2\n")], auto=True)
    assert (report.outcome, report.verdict) == ("kept", "cured and regression-free")
    assert [check.origin for check in report.checks] == ["declared"]


@pytest.mark.requirement("HEAL-1")
def test_a_patch_that_fails_on_the_road_after_all_is_taken_back(healing: Healkit) -> None:
    treacherous = MENDED.replace(
        "def ratio(a, b):\n", "import sys\ndef ratio(a, b):\n    if 'ipykernel' in sys.modules: 1 / 0\n"
    )
    report = healing.heal("ratio", advisors=[Idea(treacherous)], auto=True)
    assert report.outcome == "rolled_back"
    assert "ZeroDivisionError" in report.reason
    assert healing.vault.get("ratio").code == BROKEN
    assert [info.author for info in healing.vault.history("ratio")] == ["person", "rule", "person"]
    assert {"recovery_started", "recovery_finished"} <= set(events(report))


def test_somebody_elses_change_meanwhile_is_not_overwritten(healing: Healkit) -> None:
    def meanwhile(_: Attempt) -> bool:
        healing.vault.patch("ratio", BROKEN + "# somebody was here\n")
        return True

    report = healing.heal("ratio", advisors=[Idea(MENDED)], confirm=meanwhile)
    assert report.outcome == "pending"
    assert healing.vault.get("ratio").code.endswith("# somebody was here\n")
    assert healing.requests.get(report.request_id).code == MENDED


def test_a_tool_that_does_not_fail_any_more_is_left_alone(healing: Healkit) -> None:
    healing.vault.patch("ratio", MENDED)
    idea = Idea(WRONG)
    report = healing.heal("ratio", advisors=[idea], auto=True)
    assert (report.outcome, report.ok, report.attempts) == ("healthy", True, ())
    assert idea.cases == []


def test_what_no_code_can_mend_is_said_at_once(healing: Healkit) -> None:
    healing.vault.add("slow", "import time\ndef slow():\n    time.sleep(60)\n")
    with pytest.raises(HealError, match="Nothing says that slow@1 fails"):
        healing.heal("slow")
    with pytest.raises(HealError, match="no failure of 'slow'"):
        healing.heal("slow", log_id=1)


def test_a_wrong_wish_is_refused_before_anything_is_run(healing: Healkit) -> None:
    rows = len(healing.log.query().rows)
    with pytest.raises(ConfigError, match=r"'serch'\. Did you mean 'search'"):
        healing.heal("ratio", advisors=["serch"])
    with pytest.raises(ConfigError, match="budget_s=0"):
        healing.heal("ratio", budget_s=0)
    assert len(healing.log.query().rows) == rows
    assert not list(healing.runs_dir.glob("*"))


@pytest.mark.requirement("RUN-6", "RUN-3")
def test_an_advisor_that_repeats_itself_is_ended_by_the_policy(healing: Healkit) -> None:
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


@pytest.mark.requirement("RUN-4")
def test_a_lost_worker_is_tried_again_and_a_wrong_patch_is_not(healing: Healkit) -> None:
    slow = MENDED.replace("def ratio(a, b):\n", "import time\ndef ratio(a, b):\n    time.sleep(0.4)\n")
    killed: list[int] = []

    def kill_the_first(_: Any, __: Any) -> None:
        def kill() -> None:
            give_up = time.monotonic() + 20
            while not killed and time.monotonic() < give_up:
                for process in psutil.Process(os.getpid()).children(recursive=True):
                    with contextlib.suppress(psutil.Error):
                        # The template itself, with a trial under way, and not the sandbox around it.
                        command = process.cmdline()
                        program = Path(command[0]).name if command else ""
                        template = command[-1:] == [TEMPLATE] and program.startswith("python")
                        if template and process.children() and not killed:
                            killed.append(process.pid)
                            process.kill()
                time.sleep(0.02)

        threading.Thread(target=kill, daemon=True).start()

    report = healing.heal("ratio", advisors=[Idea(slow)], auto=True, before_patch=kill_the_first)
    assert killed
    assert report.outcome == "kept", report
    assert {"retry_scheduled", "backoff_applied"} <= set(events(report))


def test_stop_ends_it_and_nothing_is_changed(healing: Healkit) -> None:
    hang = "import time\ndef ratio(a, b):\n    time.sleep(30)\n"
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    started = time.monotonic()
    report = healing.heal("ratio", advisors=[Idea(hang, MENDED)], auto=True, stop=stop)
    assert report.outcome == "stopped"
    assert time.monotonic() - started < 20
    assert healing.vault.get("ratio").revision == 1
    assert events(report)[-1] == "run_finished"


def test_when_the_budget_is_spent_what_was_found_stands(healing: Healkit) -> None:
    hang = "import time\ndef ratio(a, b):\n    time.sleep(30)\n"
    report = healing.heal("ratio", advisors=[Idea(hang)], auto=True, budget_s=1.5)
    assert report.outcome == "not_cured"
    assert healing.vault.get("ratio").revision == 1


def test_an_advisor_that_fails_is_noted_and_the_next_one_is_asked(healing: Healkit) -> None:
    class Failing(Idea):
        name = "failing"

        def propose(self, case: Any, bench: Any) -> Any:
            raise HealError("Nobody is at home.", hint="Ask another.")

    report = healing.heal("ratio", advisors=[Failing(), Idea(MENDED)], auto=True)
    assert report.outcome == "kept"
    assert report.notes == ("failing: Nobody is at home. Ask another.",)


def test_a_tool_with_side_effects_is_neither_run_nor_searched_on(healing: Healkit) -> None:
    healing.vault.set_flags("ratio", side_effects=True)
    rows = len(healing.log.query().rows)
    report = healing.heal("ratio", advisors=[Idea(WRONG, author="search"), Idea(MENDED)], auto=True)
    assert (report.outcome, report.verdict) == ("pending", "cured but unproven")
    assert any("never searched on" in note for note in report.notes)
    assert len(healing.log.query().rows) == rows


@pytest.mark.requirement("HEAL-2")
def test_a_person_is_an_advisor_like_any_other(healing: Healkit) -> None:
    shown: list[tuple[str, str]] = []

    def edit(_: Any, code: str, problem: str) -> str | None:
        shown.append((code, problem))
        return [WRONG, MENDED][len(shown) - 1]

    report = healing.heal("ratio", advisors=[PersonAdvisor(edit)], auto=True)
    assert report.outcome == "kept"
    assert healing.vault.history("ratio")[-1].author == "person"
    assert shown[0] == (BROKEN, "")
    assert shown[1][0] == WRONG
    assert "is right" in shown[1][1]


def test_peers_an_earlier_revision_and_another_tool_are_proposed(healing: Healkit) -> None:
    healing.vault.add("quotient", MENDED.replace("ratio", "quotient"))
    report = healing.heal("ratio", advisors=["peers"], auto=True)
    assert (report.outcome, report.verdict) == ("kept", "cured and regression-free")
    assert "quotient@1" in report.attempts[0].patch.reason
    healing.vault.patch("ratio", BROKEN, reason="broken again")
    healing.execute("ratio", arguments={"a": 1, "b": 0})
    again = healing.heal("ratio", advisors=["peers"], auto=True)
    assert again.attempts[0].patch.reason == "Go back to ratio@2."


@pytest.mark.requirement("RUN-3")
def test_every_type_of_event_is_written_by_some_path_of_the_loop(healing: Healkit) -> None:
    """Which: see the scenarios; each is also tested by name above."""
    found: dict[str, str] = {}

    def note(scenario: str, report: HealReport) -> None:
        for event in events(report):
            found.setdefault(event, scenario)

    note("kept", healing.heal("ratio", advisors=[Idea("def nothing(", WRONG, MENDED)], auto=True))
    healing.vault.patch("ratio", BROKEN)
    treacherous = MENDED.replace(
        "def ratio(a, b):\n", "import sys\ndef ratio(a, b):\n    if 'ipykernel' in sys.modules: 1 / 0\n"
    )
    note("rolled back", healing.heal("ratio", advisors=[Idea(treacherous)], auto=True))
    note("halted", healing.heal("ratio", advisors=[Idea(*[WRONG] * 9, author="model")]))
    missing = set(EVENT_TYPES) - set(found)
    # A lost worker: `test_a_lost_worker_is_tried_again_and_a_wrong_patch_is_not` shows these two.
    assert missing == {"retry_scheduled", "backoff_applied"}, found


def test_the_examples_of_the_tool_are_what_its_author_wrote(healing: Healkit) -> None:
    assert healing.vault.get("ratio").examples == EXAMPLES


@pytest.mark.requirement("RUN-1")
def test_a_dry_run_shows_the_patch_and_keeps_nothing(healing: Healkit) -> None:
    report = healing.heal("ratio", advisors=[Idea(MENDED)], auto=True, dry_run=True)
    assert (report.outcome, report.verdict) == ("shown", "cured and regression-free")
    manifest = read_run(report.folder).manifest
    assert manifest is not None
    assert manifest.execution_mode == "dry_run"
    assert healing.vault.get("ratio").revision == 1
    assert healing.requests.pending() == []


STEP = "def step(n):\n    if n > 10:\n        return 20\n    return 0\n"
STEP_EXAMPLES = [{"arguments": {"n": 10}, "result": 20}, {"arguments": {"n": 3}, "result": 0}]


@pytest.mark.requirement("HEAL-1")
def test_where_patches_disagree_the_smallest_input_is_asked_about_and_the_answer_is_kept(
    healing: Healkit,
) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    asked: list[Question] = []

    def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer(20 if question.arguments["n"] >= 10 else 0)

    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", "== 10"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=ask)
    assert report.outcome == "kept"
    assert report.best is not None
    assert report.best.patch.code == STEP.replace("> 10", ">= 10")
    assert 1 <= len(asked) <= 3
    assert {choice.text for choice in asked[0].choices} == {"0", "20"}
    assert [attempt.verdict for attempt in report.attempts] == ["cured", "not_cured", "not_cured"]
    assert "your answer for (n=" in report.attempts[1].why
    examples = healing.vault.get("step").examples
    assert len(examples) == 2 + len(asked)
    healing.vault.patch("step", STEP)
    again = healing.heal("step", advisors=[ideas], auto=True, ask=ask)
    assert again.outcome == "kept"
    assert again.questions == ()


def test_whoever_thinks_longer_than_the_budget_is_still_heard(healing: Healkit) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)

    def think(question: Question) -> Answer:
        time.sleep(4.5)
        return Answer(20 if question.arguments["n"] >= 10 else 0)

    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=think, budget_s=4.0)
    assert report.outcome == "kept"
    assert report.notes == ()
    assert report.best is not None
    assert report.best.patch.code == STEP.replace("> 10", ">= 10")


def test_where_an_answer_came_too_late_to_be_held_against_the_patches_none_of_them_is_cured(
    healing: Healkit,
) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    stop = threading.Event()

    def answer_and_stop(question: Question) -> Answer:
        stop.set()
        return Answer(20 if question.arguments["n"] >= 10 else 0)

    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=answer_and_stop, stop=stop)
    assert report.outcome == "stopped"
    assert [answered.answer for answered in report.questions] != [None]
    assert {attempt.verdict for attempt in report.attempts} == {"unproven"}


def test_a_question_that_nobody_answers_is_not_asked_again(healing: Healkit) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=lambda _: None)
    assert [answered.answer for answered in report.questions] == [None]
    assert (report.outcome, report.verdict) == ("pending", "cured but unproven")
    assert "Plausible patches disagree on step(n=" in report.notes[-1]
    assert report.best is not None
    assert report.best.patch.code == STEP.replace("> 10", "> 4")


@pytest.mark.parametrize(
    ("said", "answer"),
    [("", None), ("1", Answer(0)), ("2", Answer(raises="KeyError")), ("= 2", Answer(2)), ("7", Answer(7)),
     ("raises ValueError", Answer(raises="ValueError")), ('"text"', Answer("text")), ("bare text", Answer("bare text")),
     ("[1, 2]", Answer([1, 2]))],
)  # fmt: skip
def test_what_is_typed_is_a_choice_or_a_value(said: str, answer: Answer | None) -> None:
    question = Question("step@1", {"n": 3}, (Choice(0), Choice(None, "KeyError")), 1)
    assert answer_of(question, said) == answer


@pytest.mark.requirement("HEAL-1")
def test_a_tool_that_needs_the_road_is_validated_there_and_its_trials_are_not_its_failures(
    healing: Healkit,
) -> None:
    code = "def share(a, b):\n    return mcp.vault.ratio(a=a, b=b) + extra\n"
    healing.vault.add("share", code, examples=[{"arguments": {"a": 6, "b": 3}, "result": 2.0}])
    healing.execute("share", arguments={"a": 6, "b": 3})
    wrong, right = code.replace("extra", "1"), code.replace(" + extra", "")
    report = healing.heal("share", advisors=[Idea(wrong, right)], auto=True)
    assert report.outcome == "kept"
    assert "gives 3.0 where 2.0 is right" in report.attempts[1].why
    last = healing.log.last_error("share")
    assert last is not None
    assert (last.revision, last.ename) == (1, "NameError")
    assert [info.failures for info in healing.vault.history("share")] == [1, 0]


def test_stop_is_heard_on_the_road_too(healing: Healkit) -> None:
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

"""Contract of run folders, compared with what real runs write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_features import FEATURES, RawRun, Written
from healing_samples import BROKEN, FIXED, STEP, STEP_EXAMPLES, TREACHEROUS, WRONG, Idea
from trusted import trusted_copy
from waiting import wait_until

from healkit import Config, Healkit
from healkit.errors import ArgumentsInvalid, CodeDoesNotParse, PolicyHalted, RunNotAllowed
from healkit.parts.heal.questions import Answer, Question
from healkit.parts.runs.contract import EVENT_TYPES, PolicyDefaults
from healkit.parts.runs.reader import validate_run

DOCS = Path(__file__).parents[3] / "docs" / "run_folder.md"
RULES = '[[rule]]\nid = "acme-token"\npattern = "ACME-[0-9]{8}"\ncaught = ["ACME-12345678"]\n'
SECRET = "ACME-90312457"
SHARE = "def share(parts):\n    print(parts)\n    return 6 / parts\n"
KILLED = """
import os, signal, sys
from healkit import Config, Healkit
hk = Healkit(sys.argv[1], config=Config.from_environment())
run = hk.run("killed")
hk.execute("rows", arguments={"n": 1}, record=run)
print(run.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def lesson(healkit: Healkit) -> Path:
    """Record a run with a step of each kind."""
    with healkit.run("lesson", policy=PolicyDefaults(same_state_revisits=1), allow="sha*") as run:
        healkit.execute("share", arguments={"parts": 2})
        healkit.try_code("share", SHARE + "# tried\n", {"parts": 3})
        with contextlib.suppress(CodeDoesNotParse):
            healkit.try_code("share", "def share(", {"parts": 3})
        with contextlib.suppress(RunNotAllowed):
            healkit.execute("other")
        with contextlib.suppress(ArgumentsInvalid):
            healkit.execute("share", arguments={"portions": 2})
        failed = healkit.execute("share", arguments={"parts": 0})
        assert failed.log_id is not None
        healkit.rerun(failed.log_id)
        with contextlib.suppress(PolicyHalted):
            healkit.execute("share", arguments={"parts": 0})
    return run.folder


def retried(healkit: Healkit) -> Path:
    """Run a tool that is tried again, because what it calls did not answer."""
    answers = [ConnectionError("busy"), None]

    def fetch() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    healkit.provide(fetch)
    healkit.vault.add("get", "def get():\n    return mcp.host.fetch()\n")
    with healkit.run(policy=PolicyDefaults(backoff_ms=(1,))) as run:
        healkit.execute("get")
    return run.folder


def killed(database: Path) -> Path:
    """Record a run whose process is killed in it."""
    # Where no checkout of healkit lies in the working folder: Python would import that one.
    command, folder = [sys.executable, "-c", KILLED, str(database)], database.parent
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=folder)
    return Path(done.stdout.strip())


def healings(healkit: Healkit) -> Iterator[tuple[str, Path]]:
    """Healings that end in different ways."""
    yield "dry run", healkit.heal("ratio", advisors=[Idea(FIXED)], dry_run=True).folder
    yield "halted", healkit.heal("ratio", advisors=[Idea(*[WRONG] * 9, author="model")]).folder
    yield "declined", healkit.heal("ratio", advisors=[Idea(FIXED)], confirm=lambda _: False).folder
    yield "kept", healkit.heal("ratio", advisors=[Idea("def nothing(", WRONG, FIXED)], auto=True).folder
    healkit.vault.patch("ratio", BROKEN)
    yield "rolled back", healkit.heal("ratio", advisors=[Idea(TREACHEROUS)], confirm=lambda _: True).folder
    ideas = [STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10")]

    def answered(question: Question) -> Answer:
        return Answer(20 if question.arguments["n"] >= 10 else 0)

    yield "unanswered", healkit.heal("step", advisors=[Idea(*ideas)], ask=lambda _: None).folder
    yield "asked", healkit.heal("step", advisors=[Idea(*ideas)], auto=True, ask=answered).folder
    idea = Idea("def login(token):\n    return len(token)\n")
    yield "secret", healkit.heal("login", advisors=[idea], dry_run=True).folder
    asyncio.run(stopped(healkit))
    yield "not mendable", healkit.heal("sleeper", advisors=[]).folder


async def stopped(healkit: Healkit) -> None:
    """Stop an execution from outside; no patch fixes that."""
    started = threading.Event()
    healkit.provide(started.set, "started")
    healkit.vault.add("sleeper", "import time\ndef sleeper():\n    mcp.host.started()\n    time.sleep(60)\n")
    task = asyncio.create_task(healkit.aexecute("sleeper"))
    assert await asyncio.to_thread(started.wait, 60)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until, lambda: healkit.log.last_error("sleeper"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, failing_database: Path) -> Iterator[Written]:
    """Executions, a dry run, halted runs, healings with their inspections, and a killed run."""
    folder = tmp_path_factory.mktemp("contract")
    (folder / "rules.toml").write_text(RULES)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        patched.setenv("HEALKIT_SANITIZER_RULES", str(folder / "rules.toml"))
        database = Path(trusted_copy(failing_database, folder / "healkit.db"))
        with Healkit(database, config=Config.from_environment(os.environ)) as healkit:
            healkit.vault.add("share", SHARE)
            healkit.vault.add("other", "def other():\n    return 1\n")
            healkit.vault.add("step", STEP, examples=STEP_EXAMPLES)
            healkit.vault.add("rows", "SELECT :n AS n", type="sql")
            healkit.vault.add("login", "def login(token):\n    return int(token)\n")
            healkit.execute("login", arguments={"token": SECRET})
            runs = {"lesson": lesson(healkit), **dict(healings(healkit))}
            with healkit.run(policy=PolicyDefaults(hard_cap_steps=1)) as run:
                healkit.execute("rows", arguments={"n": 1})
                with contextlib.suppress(PolicyHalted):
                    healkit.execute("rows", arguments={"n": 1})
            runs["execution"] = run.folder
            runs["retried"] = retried(healkit)
        runs["killed"] = killed(database)
        yield Written({name: RawRun(path) for name, path in runs.items()})


@pytest.mark.slow
@pytest.mark.requirement("RUN-1", "RUN-2", "RUN-3", "RUN-4", "RUN-5", "RUN-6", "RUN-7")
def test_every_feature_of_the_contract_is_written(written: Written) -> None:
    """Of 50 features of the contract each is in the files, whatever wrote them."""
    assert [feature for feature, is_in in FEATURES.items() if not is_in(written)] == []


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_every_run_is_in_order(written: Written) -> None:
    for name, run in written.runs.items():
        problems = [problem.kind for problem in validate_run(run.folder).problems]
        assert problems == (["unfinished"] if name == "killed" else []), name


@pytest.mark.requirement("RUN-9", "TRACE-2")
def test_a_healing_hides_a_secret_wherever_it_says_it(written: Written) -> None:
    """Failure message, diagnosis, its report and the checks all quote the argument."""
    run = written.runs["secret"]
    files = [path.read_text() for path in run.folder.rglob("*") if path.is_file()]
    assert not [text for text in files if SECRET in text]
    assert sum("[REDACTED:acme-token]" in text for text in files) >= 4
    (report,) = [item for item in run.evidence["items"] if item["kind"] == "report"]
    assert report["redacted"]


@pytest.mark.requirement("RUN-6")
def test_a_healing_that_may_not_recover_is_halted(healing: Healkit) -> None:
    """RUN-6: the cap on recoveries ended nothing, nothing of it was on record, and the report said `kept`."""
    policy = PolicyDefaults(recovery_max=0)
    report = healing.heal("ratio", advisors=[Idea(TREACHEROUS)], confirm=lambda _: True, policy=policy)
    assert (report.outcome, report.ok, report.verdict_code) == ("halted", False, "not_cured")
    assert report.revision == healing.vault.get("ratio").revision == 2
    assert report.reason == (
        "ratio v2 fails when it runs (ZeroDivisionError: division by zero), but stays active. "
        "The run has recovered 0 times, which is the limit."
    )
    assert "ratio v1: halted by the policy: does not fix it" in str(report)
    assert "healkit vault undo ratio" in str(report)
    (halt,) = [line for line in RawRun(report.folder).lines if line["event_type"] == "policy_halt"]
    assert halt["metadata"]["policy"] == {
        "reason": "recovery_max",
        "state_key": None,
        "count": 1,
        "threshold": 0,
    }
    assert RawRun(report.folder).lines[-1]["metadata"]["status"] == "halted"


def test_a_refusal_by_a_run_is_not_healed(healing: Healkit) -> None:
    """Here the newest row of the tool is the run's refusal; its code was not run."""
    with healing.run(allow="other"), pytest.raises(RunNotAllowed):
        healing.execute("ratio", arguments={"a": 1, "b": 2})
    report = healing.heal("ratio", advisors=[Idea(FIXED)], dry_run=True)
    assert "RUN_NOT_ALLOWED" not in str(RawRun(report.folder).lines)
    assert (report.outcome, report.verdict_code) == ("shown", "cured")


@pytest.mark.requirement("RUN-3")
def test_the_page_says_which_events_are_written_and_by_what(written: Written) -> None:
    """C6: the page's three tables hold the events of runs, and those that only healings or decisions write."""
    tables = re.findall(r"\| event \| when \|\n\|.*\n((?:\|.*\n)+)", DOCS.read_text())
    of_runs, of_healings, of_decisions = (set(re.findall(r"`([\w.]+)`", " ".join(row.split("|")[1] for row in table.splitlines()))) for table in tables)  # fmt: skip
    by_runs = {line["event_type"] for line in written.events(of=["lesson", "execution", "retried", "killed"])}
    by_healings = {line["event_type"] for run in written.healings() for line in run.lines}
    assert by_runs | by_healings == {name for name in EVENT_TYPES if not name.startswith("trace.")}
    assert by_runs == of_runs
    assert by_healings - by_runs == of_healings
    assert {event for event in EVENT_TYPES if event.startswith("trace.")} == of_decisions

"""Model that fixes a tool of the gallery."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from healing_samples import Idea
from model_server import SECRET_KEY, Budget, ModelServer, drips, says
from waiting import WITHIN_S

from healkit import Healkit
from healkit.core.contracts.vault import VaultEntry
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.advisors.model import ModelAdvisor
from healkit.parts.heal.records import Attempt
from healkit.parts.teach.gallery import lesson

FIXES = Path(__file__).parents[2] / "parts" / "teach" / "fixes"
RIGHT = (FIXES / "fibonacci.py").read_text()
WRONG = lesson("fibonacci").code.replace(
    "growth = current / previous\n", "growth = current / (previous or 1)\n"
)
WRONG = WRONG.replace(
    "previous, current = current, previous + current", "previous, current = current, previous"
)


def answer(code: str, reason: str = "The first quotient divides by zero.") -> str:
    return f"{reason}\n\n```python\n{code}```\n"


def broken_fibonacci(hk: Healkit) -> None:
    wanted = lesson("fibonacci")
    hk.vault.add("fibonacci", wanted.code, examples=list(wanted.examples))
    assert hk.execute("fibonacci", arguments=wanted.failing).failure is not None


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)


@pytest.mark.requirement("HEAL-2")
@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize(("provider", "kept"), [("openai", True), ("anthropic", False)])
def test_the_model_learns_why_it_failed(
    server: ModelServer, tmp_path: Path, provider: str, kept: bool
) -> None:
    server.plan.extend([says(answer(WRONG)), says(answer(RIGHT, "The quotient is not needed."))])
    said: list[str] = []
    with Healkit(tmp_path / "healkit.db", config=server.config(provider)) as hk:
        broken_fibonacci(hk)
        if not kept:  # then the failing check is watched
            failed = hk.last_error("fibonacci")
            assert failed is not None
            failed.post_mortem().close()
        report = hk.heal("fibonacci", advisors=["model"], auto=True, progress=said.append)
        assert (report.outcome, report.verdict) == ("kept", "fixed, no regressions")
        assert hk.execute_tool("fibonacci", arguments={"n": 10}) == 55
        newest = hk.vault.history("fibonacci")[-1]
    assert (newest.author, newest.reason) == (
        "model",
        "The model says: “The quotient is not needed.” [fixed, no regressions]",
    )
    assert report.best is not None
    assert report.best.patch.code == RIGHT
    assert [attempt.patch.advisor for attempt in report.attempts] == ["model", "model"]
    assert report.cost == {"requests": 2, "input_tokens": 200, "output_tokens": 40}
    assert "teacher-1: question 2." in said
    first, second = (request.text for request in server.requests)
    assert "fibonacci.previous: int\n" in first
    assert "What was tried" not in first
    assert "by model: does not fix it" in second
    assert 'called with {"n":10} it gives another number' in second
    assert "+        growth = current / (previous or 1)" in second
    assert SECRET_KEY not in f"{report!r} {report} {said}"
    assert_nowhere(SECRET_KEY, tmp_path)


@pytest.mark.usefixtures("_key")
def test_a_useless_model_is_followed_by_the_next_advisor(server: ModelServer, tmp_path: Path) -> None:
    server.plan.extend([says("Hm."), says("I cannot.")])
    with Healkit(tmp_path / "healkit.db", config=server.config(heal_model_attempts=2)) as hk:
        broken_fibonacci(hk)
        hk.vault.patch("fibonacci", lesson("fibonacci").code + "# for jane@example.com\n", reason="a note")
        hk.execute("fibonacci", arguments={"n": 10})
        report = hk.heal("fibonacci", advisors=["model", Idea(RIGHT)], auto=True)
    assert report.outcome == "kept"
    assert report.cost == {"requests": 2, "input_tokens": 200, "output_tokens": 40, "ideas": 1}
    refused, withheld = sorted(note for note in report.notes if note.startswith("model:"))[::-1]
    assert "gave no usable answer" in refused
    assert "withheld from teacher-1: " in withheld
    assert " email" in withheld
    assert "jane" not in str(report.notes)


def test_without_a_model_the_report_says_how_to_name_one(healkit: Healkit) -> None:
    broken_fibonacci(healkit)
    report = healkit.heal("fibonacci", advisors=["model"])
    assert report.outcome == "not_cured"
    assert "model: No model is configured: set HEALKIT_HEAL_MODEL" in str(report.notes)


@pytest.mark.usefixtures("_key")
def test_stop_in_the_middle_of_an_answer_ends_the_healing(server: ModelServer, tmp_path: Path) -> None:
    server.plan.append(drips)
    stop = threading.Event()

    def progress(sentence: str) -> None:
        if "of the answer so far" in sentence:
            stop.set()

    with Healkit(tmp_path / "healkit.db", config=server.config()) as hk:
        broken_fibonacci(hk)
        report = hk.heal("fibonacci", advisors=["model"], progress=progress, stop=stop, budget_s=60.0)
        assert report.outcome == "stopped"
        assert hk.vault.get("fibonacci").revision == 1
    assert server.hung_up.wait(WITHIN_S)


def assert_nowhere(secret: str, folder: Path) -> None:
    """Not in the database, its journal, a trace or a run folder."""
    with closing(sqlite3.connect(folder / "healkit.db")) as database, database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "trace.jsonl" for path in files)
    for path in files:
        assert secret.encode() not in path.read_bytes(), path


def test_the_advisor_can_be_drawn_like_any_other(server: ModelServer) -> None:
    server.plan.extend([says(answer(WRONG)), says(answer(WRONG)), says(answer(RIGHT))])
    entry = _entry()
    advisor = ModelAdvisor(server.config(heal_model_attempts=3), environ={})
    first, second = list(advisor.propose(Case(entry, None, ()), Budget()))
    assert (first.code, second.code) == (WRONG, RIGHT)
    assert second.rank > first.rank
    told = [request.text for request in server.requests]
    assert "This was proposed and not taken" in told[1]
    assert "was already tried" in told[2]


@pytest.mark.parametrize("verdict", ["cured", "unproven"])
def test_no_question_follows_a_patch_that_passes(server: ModelServer, verdict: str) -> None:
    server.plan.extend([says(answer(RIGHT)), says(answer(WRONG))])
    rounds = ModelAdvisor(server.config(), environ={}).propose(Case(_entry(), None, ()), Budget())
    patch = next(rounds)
    with pytest.raises(StopIteration):
        rounds.send(Attempt(number=1, patch=patch, diff="", verdict=verdict))
    assert len(server.requests) == 1


def _entry() -> VaultEntry:
    return VaultEntry("fibonacci", "default", 1, lesson("fibonacci").code, "")

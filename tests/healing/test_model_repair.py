"""A model mends a tool of the gallery: wrong first, right once it has seen why."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from model_server import SECRET_KEY, Budget, ModelServer, model_server, says

from healkit import Healkit
from healkit.contracts.healing import Attempt, Check, Patch
from healkit.gallery import lesson
from healkit.healing.advisor import Case, Workbench
from healkit.healing.model import ModelAdvisor
from healkit.store.entries import VaultEntry

FIXES = Path(__file__).parents[1] / "gallery" / "fixes"
RIGHT = (FIXES / "fibonacci.py").read_text()
WRONG = lesson("fibonacci").code.replace(
    "growth = current / previous\n", "growth = current / (previous or 1)\n"
)
WRONG = WRONG.replace(
    "previous, current = current, previous + current", "previous, current = current, previous"
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def answer(code: str, reason: str = "The first quotient divides by zero.") -> str:
    return f"{reason}\n\n```python\n{code}```\n"


def validated(bench: Workbench, case: Case, patch: Patch, number: int) -> Attempt:
    """The patch run restricted on every check, and what that says of it."""
    (results,) = bench.run([patch.code], case.checks)
    passed = sum(result.outcome == "passed" for result in results)
    diff = "\n".join(difflib.unified_diff(case.entry.code.split("\n"), patch.code.split("\n"), lineterm=""))
    cured = passed == len(results)
    why = "" if cured else f"{len(results) - passed} checks do not pass"
    return Attempt(
        number=number, patch=patch, diff=diff, verdict="cured" if cured else "not_cured", why=why,
        passed=passed, total=len(results), results=results,
    )  # fmt: skip


def broken_fibonacci(hk: Healkit) -> Case:
    wanted = lesson("fibonacci")
    hk.vault.add("fibonacci", wanted.code)
    failed = hk.execute("fibonacci", arguments=wanted.failing, record=True)
    checks: Sequence[Check] = [
        Check(
            origin="failing" if example["arguments"] == wanted.failing else "declared",
            arguments=example["arguments"], known=True, expected=example["result"],
        )
        for example in wanted.examples
    ]  # fmt: skip
    return Case(hk.vault.get("fibonacci"), failed.failure, tuple(checks))


@pytest.mark.requirement("HEAL-2")
@pytest.mark.parametrize(("provider", "kept"), [("openai", True), ("anthropic", False)])
def test_a_wrong_answer_is_told_why_and_the_next_one_cures(
    server: ModelServer, healkit: Healkit, tmp_path: Path, provider: str, kept: bool
) -> None:
    server.plan.extend([says(answer(WRONG)), says(answer(RIGHT, "The quotient is not needed."))])
    case = broken_fibonacci(healkit)
    failed = healkit.last_error("fibonacci")
    assert failed is not None
    advisor = ModelAdvisor(
        server.config(provider),
        environ={"HEALKIT_MODEL_KEY": SECRET_KEY},
        locals_of=lambda _: failed.post_mortem().all_locals(),
    )
    if not kept:  # then the failing check is watched
        failed.post_mortem().close()
    bench = healkit._bench(case.entry.ref, 60.0)
    rounds = advisor.propose(case, bench)
    patch = next(rounds)
    attempt = validated(bench, case, patch, 1)
    assert attempt.verdict == "not_cured"
    patch = rounds.send(attempt)
    cured = validated(bench, case, patch, 2)
    assert cured.verdict == "cured", cured
    with pytest.raises(StopIteration):
        rounds.send(cured)

    first, second = (request.text for request in server.requests)
    assert "fibonacci.previous: int\n" in first
    assert "What was tried" not in first
    assert "by model: not cured" in second
    assert 'called with {"n":10} it returned' in second
    assert "+        growth = current / (previous or 1)" in second
    assert advisor.spending.counts == {"requests": 2, "input_tokens": 200, "output_tokens": 40}
    assert_nowhere(SECRET_KEY, tmp_path)


def assert_nowhere(secret: str, folder: Path) -> None:
    """Not in the database, its journal, a trace or a run folder."""
    with sqlite3.connect(folder / "healkit.db") as database:
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
    assert "was tried before" in told[2]


def test_what_other_advisors_tried_is_told_and_not_proposed_again(server: ModelServer) -> None:
    server.plan.extend([says(answer(WRONG)), says(answer(RIGHT))])
    tried = Patch(code=WRONG, advisor="search", author="search", reason="")
    attempt = Attempt(
        number=1, patch=tried, diff="-a\n+b", verdict="silenced", why="It returns 1 for n=10, not 55."
    )
    case = Case(_entry(), None, (), (attempt,))
    advisor = ModelAdvisor(server.config(heal_model_attempts=2), environ={})
    (patch,) = advisor.propose(case, Budget())
    assert patch.code == RIGHT
    assert "by search: silenced only" in server.requests[0].text
    assert "It returns 1 for n=10, not 55." in server.requests[0].text


@pytest.mark.parametrize("verdict", ["cured", "unproven"])
def test_nothing_is_asked_once_no_check_speaks_against_a_patch(server: ModelServer, verdict: str) -> None:
    server.plan.extend([says(answer(RIGHT)), says(answer(WRONG))])
    rounds = ModelAdvisor(server.config(), environ={}).propose(Case(_entry(), None, ()), Budget())
    patch = next(rounds)
    with pytest.raises(StopIteration):
        rounds.send(Attempt(number=1, patch=patch, diff="", verdict=verdict))  # type: ignore[arg-type]
    assert len(server.requests) == 1


def _entry() -> VaultEntry:
    return VaultEntry("fibonacci", "default", 1, lesson("fibonacci").code, "")

"""Questions to a person where plausible patches disagree."""

from __future__ import annotations

import threading
import time

import pytest
from healing_samples import STEP, STEP_EXAMPLES, Idea

from healkit import Healkit
from healkit.parts.heal.inputs import variants
from healkit.parts.heal.questions import Answer, Choice, Question, answer_of


@pytest.mark.slow
@pytest.mark.requirement("HEAL-1")
def test_disagreeing_patches_lead_to_a_question_on_the_smallest_input(healing: Healkit) -> None:
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


def test_examples_that_are_calls_lead_to_a_question_too(healing: Healkit) -> None:
    """H4: the arguments of an example's call count like those of any other example."""
    calls = [{"call": "step(10)", "result": 20}, {"call": "round(step(n=3))", "result": 0}]
    healing.vault.add("step", STEP, examples=calls)
    asked: list[Question] = []
    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=asked.append)
    assert [len(question.choices) for question in asked] == [2]
    assert {attempt.verdict for attempt in report.attempts} == {"unproven"}
    alone = healing.heal("step", advisors=[ideas], auto=True)
    assert any("disagree on step(n=" in note for note in alone.notes), str(alone)


@pytest.mark.requirement("HEAL-1")
def test_different_exceptions_tell_patches_apart(healing: Healkit) -> None:
    raising = "def step(n):\n    if n < 0:\n        raise {}(n)\n    return 20 if n >= 10 else 0\n"
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    asked: list[Question] = []
    ideas = Idea(raising.format("ValueError"), raising.format("KeyError"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=asked.append)
    assert report.outcome == "pending"
    assert [question.arguments for question in asked] == [{"n": -1}]
    assert [choice.text for choice in asked[0].choices] == ["raises ValueError", "raises KeyError"]


def test_a_whole_number_and_its_decimal_are_one_choice(healing: Healkit) -> None:
    """H9: `0` and `0.0` were two choices, although one answer is right for both."""
    code = "def rate(won, played):\n    return won / played\n"
    healing.vault.add("rate", code)
    healing.execute("rate", arguments={"won": 1, "played": 0})
    guards = [
        code.replace("    return", f"    if not played: return {given}\n    return")
        for given in ("0", "0.0", "1")
    ]
    report = healing.heal("rate", advisors=[Idea(*guards)])
    assert any(note.endswith(": 0 or 1. It is not known which one is right.") for note in report.notes)


def test_healing_distinguishes_patches_that_differ_within_words(healing: Healkit) -> None:
    """H10: two claimed patches differed on inputs that were not generated: words with a hyphen in them."""
    code = "def names(text):\n    return ' '.join(w.lower() for w in text.split())\n"
    examples = [{"arguments": {"text": "ada lovelace"}, "result": "Ada Lovelace"}]
    healing.vault.add("names", code, examples=examples)
    ideas = [code.replace("lower", other) for other in ("title", "capitalize")]
    report = healing.heal("names", advisors=[Idea(*ideas)])
    assert report.verdict_code == "unproven"
    assert any('disagree on names(text=\'-e\'): "-E" or "-e"' in note for note in report.notes), report.notes


@pytest.mark.slow
def test_an_answer_after_the_budget_still_counts(healing: Healkit) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)

    def think(question: Question) -> Answer:
        time.sleep(2.5)
        return Answer(20 if question.arguments["n"] >= 10 else 0)

    ideas = Idea(*(STEP.replace("> 10", other) for other in ("> 4", "> 7", ">= 10")))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=think, budget_s=4.0)
    assert report.outcome == "kept"
    assert report.notes == ()
    assert report.best is not None
    assert report.best.patch.code == STEP.replace("> 10", ">= 10")


def test_an_answer_too_late_to_check_leaves_no_patch_cured(healing: Healkit) -> None:
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


def test_a_question_without_an_answer_is_not_asked_again(healing: Healkit) -> None:
    healing.vault.add("step", STEP, examples=STEP_EXAMPLES)
    ideas = Idea(STEP.replace("> 10", "> 4"), STEP.replace("> 10", ">= 10"))
    report = healing.heal("step", advisors=[ideas], auto=True, ask=lambda _: None)
    assert [answered.answer for answered in report.questions] == [None]
    assert (report.outcome, report.verdict) == ("pending", "passes all checks, unverified")
    assert "Plausible patches disagree on step(n=" in report.notes[-1]
    assert report.best is not None
    assert report.best.patch.code == STEP.replace("> 10", "> 4")


@pytest.mark.parametrize(
    ("said", "answer"),
    [("", None), ("1", Answer(0)), ("2", Answer(raises="KeyError")), ("= 2", Answer(2)), ("7", Answer(7)),
     ("raises ValueError", Answer(raises="ValueError")), ('"text"', Answer("text")), ("bare text", Answer("bare text")),
     ("[1, 2]", Answer([1, 2]))],
)  # fmt: skip
def test_typed_text_is_a_choice_or_a_value(said: str, answer: Answer | None) -> None:
    question = Question("step v1", {"n": 3}, (Choice(0), Choice(None, "KeyError")), 1)
    assert answer_of(question, said) == answer


def test_variants_keep_types_and_fit_the_schema() -> None:
    found = variants([{"n": 5, "text": "ab"}], lambda given: given["n"] > 0, 50)
    assert found
    assert all(type(arguments["n"]) is int and arguments["n"] > 0 for arguments in found)
    assert all(type(arguments["text"]) is str for arguments in found)
    assert {"n": 1, "text": "ab"} in found
    assert {"n": 5, "text": ""} in found

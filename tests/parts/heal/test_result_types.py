"""Types of results: a patch that changes one says so."""

from __future__ import annotations

from typing import Any

import pytest
from healing_samples import Idea

from healkit import Healkit
from healkit.core.contracts.patches import difference
from healkit.core.workers.inside.capture import describe
from healkit.parts.heal.verdicts import returned_types
from healkit.parts.heal.workbench import Bench
from healkit.parts.trials.trials import Trials

LETTERS = "def letters(text):\n    return sorted(set(text[1:]))\n"
EXAMPLES = [
    {"arguments": {"text": "cab"}, "result": ["a", "b", "c"]},
    {"arguments": {"text": "aab"}, "result": ["a", "b"]},
]
RATE = "def win_rate(won: int, played: int) -> float:\n    return won / played\n"


def healed(healkit: Healkit, name: str, code: str, examples: list[dict[str, Any]], *ideas: str) -> Any:
    healkit.vault.add(name, code, examples=examples)
    return healkit.heal(name, advisors=[Idea(*ideas)])


@pytest.mark.requirement("HEAL-3")
@pytest.mark.parametrize(
    ("right", "code", "wrong", "said"),
    [
        (
            {"ab": ["a", "b"], "cde": ["c", "d", "e"]},
            "sorted(set(text[1:]))",
            "set(text)",
            "a set, but ['a', 'b'] is right",
        ),
        (
            {"ab": {"2": "ab"}, "cde": {"3": "cde"}},
            "{str(len(text[1:])): text}",
            "{len(text): text}",
            "a dict[int], but {'2': 'ab'} is right",
        ),
    ],
)
def test_what_only_its_json_makes_equal_is_wrong(
    healkit: Healkit, right: dict[str, object], code: str, wrong: str, said: str
) -> None:
    """E10: checks and the search compare types too: a set differs from a sorted list, and 2 from '2'."""
    code = f"def letters(text):\n    return {code}\n"
    examples = [{"arguments": {"text": text}, "result": result} for text, result in right.items()]
    bad = f"def letters(text):\n    return {wrong}\n"
    good = code.replace("text[1:]", "text")
    report = healed(healkit, "letters", code, examples, bad, good)
    assert (report.verdict_code, report.best.patch.code) == ("cured", good)
    assert report.attempts[1].why.endswith(said)
    bench = Bench(Trials(healkit.recorder, healkit.config), healkit.vault.get("letters").ref, 60.0)
    letters = dict(bench.score(code, [[difference(code, one)] for one in (bad, good)], report.checks))
    assert letters == {0: "w-", 1: ".."}


def test_a_patch_that_keeps_the_types_comes_before_one_that_changes_them(healkit: Healkit) -> None:
    """H7: of two patches that pass, the one that keeps the type is the cure."""
    right = LETTERS.replace("text[1:]", "text")
    report = healed(
        healkit, "letters", LETTERS, EXAMPLES, LETTERS.replace("sorted(set(text[1:]))", "set(text)"), right
    )
    assert (report.verdict_code, report.best.patch.code) == ("cured", right)


def test_the_list_of_an_example_may_be_met_by_a_tuple(healkit: Healkit) -> None:
    """H7: JSON has no tuples, so a tuple may stand for a list where the tool returned nothing before."""
    code = "def pair(a, b):\n    return (missing, b)\n"
    examples = [{"arguments": {"a": 1, "b": 2}, "result": [1, 2]}]
    report = healed(healkit, "pair", code, examples, code.replace("missing", "a"))
    assert (report.verdict_code, report.best.results[0].outline) == ("cured", "tuple")


@pytest.mark.slow
def test_a_changed_type_is_also_found_in_a_tool_that_calls_others(healkit: Healkit) -> None:
    """H7: a check in a worker said nothing of types that JSON has not."""
    healkit.vault.add("chars", "def chars(text):\n    return list(text)\n")
    code = LETTERS.replace("set(text[1:])", "set(mcp.vault.chars(text=text)[1:])")
    unordered = "def letters(text):\n    return set(mcp.vault.chars(text=text))\n"
    report = healed(healkit, "letters", code, EXAMPLES, unordered)
    assert report.attempts[0].why.endswith("a set, but ['a', 'b', 'c'] is right")


def test_a_float_in_an_example_allows_floats_for_its_other_results(healkit: Healkit) -> None:
    """H7: `//` for `/` returned an int where the result is whole; the failing example has a float."""
    code = "def mean(a, b):\n    return (a + b) // 2\n"
    examples = [
        {"arguments": {"a": 1, "b": 2}, "result": 1.5},
        {"arguments": {"a": 1, "b": 4}, "result": 2.5},
        {"arguments": {"a": 2, "b": 2}, "result": 2},
    ]
    assert healed(healkit, "mean", code, examples, code.replace("//", "/")).verdict_code == "cured"


def test_none_from_a_tool_that_only_returns_truth_values_is_doubted(healkit: Healkit) -> None:
    """H10: a guard that returns None passes an example whose call turns it into False."""
    code = "def is_long(text):\n    if len(text) > 3:\n        return True\n    return False\n"
    examples = [{"call": "bool(is_long(None))", "result": False}]
    patched = code.replace("    if len", "    if text is None:\n        return None\n    if len")
    report = healed(healkit, "is_long", code, examples, patched)
    assert report.best.patch.doubt == "It returns None, but the tool never did."


@pytest.mark.slow
def test_a_change_is_said_with_the_call_that_it_changes(healkit: Healkit) -> None:
    """H8: the report names the call whose result changes."""
    healkit.vault.add("win_rate", RATE)
    healkit.execute("win_rate", arguments={"won": 0, "played": 0})
    guard = RATE.replace("    return", "    if played == 0:\n        return 0.0\n    return")
    report = healkit.heal("win_rate", advisors=[Idea(RATE.replace("/", "*"), guard)])
    assert report.best.patch.code == guard
    changed = report.attempts[1].patch.doubt
    assert changed.startswith("It changes the result of win_rate(won=")
    assert changed.endswith(", and no example says what is right there.")


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        ("float", {"float", "int"}),
        ("'float | None'", {"float", "int", "NoneType"}),
        ("Optional[str]", {"str", "NoneType"}),
        ("list[int]", {"list"}),
        ("Iterable[int]", set()),
        ("int | Sequence", set()),
    ],
)
def test_an_annotation_says_which_types_fit(annotation: str, names: set[str]) -> None:
    """H8: annotations count."""
    assert returned_types(f"def f(x) -> {annotation}:\n    return x\n", "f") == names


def test_describe_leaves_out_the_addresses_of_objects() -> None:
    """E11: two patches seemed to disagree, as each run has its own `<generator object … at 0x7f…>`."""
    assert describe(iter(())) == "<tuple_iterator object>"
    assert describe("at 0x7f> is text") == "'at 0x7f> is text'"

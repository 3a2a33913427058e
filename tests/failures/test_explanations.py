"""Explanations: every row explains its own example's failure."""

from __future__ import annotations

import re

import msgspec
import pytest
from library_failures import run_code

from healkit.contracts.failure import Failure, Frame
from healkit.errors import TOOL_CODES
from healkit.errors import catalogue as error_codes
from healkit.facts.observers import suggestions
from healkit.failures import catalogue
from healkit.failures.catalogue import LEVELS, FailurePattern, explain, patterns, subjects

#: What a worker must stop from outside, and what no pure Python code can be made to do.
STOPPED = {"timeout", "memory"}
#: Those for facts have their examples in `notebook_failures.toml`.
OBSERVED = {text.name: text for subject in subjects().values() for text in subject.facts}
TEXTS = [(text, pattern) for pattern in patterns() for text in pattern.texts]
TEXTS += [(text, FailurePattern()) for text in OBSERVED.values()]
RUNNABLE = [text for text, _ in TEXTS if text.example and text.name not in STOPPED]


def failure_of(code: str, *, facts: bool = True) -> Failure:
    """Run the code here, and take its failure as a worker would; without facts, as one that is only text."""
    failure = run_code(code).failure
    return failure if facts else msgspec.structs.replace(failure, facts={})


@pytest.mark.requirement("FACE-7")
@pytest.mark.parametrize("row", RUNNABLE, ids=lambda row: row.name)
def test_each_row_explains_the_real_failure_of_its_example(row):
    explanation = explain(failure_of(row.example, facts=False))
    assert explanation.rule == row.name
    assert explanation.what.endswith((".", ":", "?"))
    for _, text in explanation.steps():
        assert "{" not in text.replace("{value}", "").replace("`{`", "")
        assert "``" not in text


@pytest.mark.requirement("FACE-7")
@pytest.mark.parametrize("missing", ["groups", "facts"])
def test_no_row_has_a_sentence_with_an_empty_place(missing):
    """With a group that matched nothing, a sentence read `'…' does not match the expected format .`"""
    for text, pattern in TEXTS:
        groups = re.compile(pattern.message).groupindex
        places = set(re.findall(r"\{(\w+)", f"{text.what} {text.why} {text.hint} {text.fix}"))
        for empty in sorted((places & groups.keys()) if missing == "groups" else places - groups.keys()):
            fields = {name: f"<{name}>" for name in places} | {empty: ""}
            for step in (text.what, text.why, text.hint, text.fix):
                said = catalogue.filled_in(step, fields)
                assert not re.search(r"``(?!`)|  | [.,;:?](?: |$)| $", said), (text.name, empty, said)


def test_numbers_and_nouns_agree():
    assert (
        explain(failure_of("x, = [1, 2]")).what
        == "The left side of `=` has 1 name, but the right side has more values."
    )
    assert explain(failure_of("x, = []")).what == "The code expects 1 value but got 0."
    assert "given 1 value but takes" in explain(failure_of("def f(): pass\nf(1)")).what


def test_explanations_have_unique_names_and_examples():
    names = [text.name for text, _ in TEXTS]
    assert len(names) == len(set(names))
    assert len(RUNNABLE) + len(OBSERVED) >= 200
    without = {text.name for text, _ in TEXTS if not text.example}
    ours = {text.name for text, pattern in TEXTS if set(pattern.raises) <= error_codes().keys()}
    assert without - OBSERVED.keys() <= ours


def test_a_message_pattern_is_written_once():
    told = [pattern for pattern in patterns() if pattern.message.strip("(?P<what>.*)")]
    rows = [(ename, pattern.message) for pattern in told for ename in pattern.raises]
    assert len(rows) == len(set(rows))


def test_every_ending_of_an_execution_is_explained():
    for code in set(TOOL_CODES) - {"TOOL_EXCEPTION"}:
        assert explain(Failure(code, "Ending", "it ended", "")).rule != "any", code


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("prices = {'apple': 3}\nprices['aple']", "`'apple'`"),
        ("shelf = {'fruit': {'apple': 3}}\nshelf['fruit']['aple']", "`'apple'`"),
        ("def area(width):\n    pass\narea(widht=1)", "`width`"),
        ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales['unit']", "`'units'`"),
        ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales.unit", "`'units'`"),
        ("class Basket:\n    def __init__(self):\n        self.items = []\nBasket().itens", "`items`"),
    ],
)
def test_similar_names_are_suggested(code, said):
    explanation = explain(failure_of(code))
    assert said in explanation.what + explanation.why


def test_suggestions_run_no_code_of_the_object():
    code = (
        "class Hostile:\n    def __dir__(self):\n        raise SystemExit\n    def __getattribute__(self, name):\n"
        "        if name == 'x':\n            raise AttributeError('no x', name=name, obj=self)\n        raise SystemExit\n"
        "Hostile().x"
    )
    failure = failure_of(code)
    assert failure.near == []
    assert failure.traceback.endswith("AttributeError: no x\n")


def test_suggestions_do_not_call_str_on_a_key():
    class Key:
        def __str__(self):
            raise SystemExit

        __repr__ = __str__

    with pytest.raises(KeyError) as caught:
        _ = {"a": 1}[Key()]
    assert suggestions(caught.value, caught.tb) == ([], [])


def test_a_level_hides_the_steps_after_it():
    whole = explain(failure_of("1 / 0"))
    assert [level for level in LEVELS[1:] if getattr(whole.at(level), level)] == [
        "what",
        "why",
        "hint",
        "fix",
    ]
    hint = whole.at("hint")
    assert hint.hint
    assert not hint.fix
    assert not list(whole.at("off").steps())


def test_the_place_is_the_innermost_own_line():
    frames = [Frame("<a@1>", 2, "a", "  b()", in_tool=True), Frame("/lib/x.py", 3, "x", "y")]
    explanation = explain(Failure("TOOL_EXCEPTION", "ZeroDivisionError", "division by zero", "", frames))
    assert explanation.where == "Line 2 of a v1, in a: `b()`"


def test_an_unknown_failure_is_shown_as_it_is():
    explanation = explain(Failure("TOOL_EXCEPTION", "some.Odd", "very odd {braces}", ""))
    assert explanation.rule == "any"
    assert explanation.what == "Odd: very odd {braces}"

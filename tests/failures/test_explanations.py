"""Explanations: every row explains the failure of its own example."""

from __future__ import annotations

import linecache
import warnings

import pytest

from healkit.contracts.failure import Failure, Frame, read_traceback
from healkit.contracts.suggestions import suggestions
from healkit.errors import TOOL_CODES
from healkit.failures import LEVELS, explain
from healkit.failures.lookup import PATTERNS

FILE = "<example@1>"
#: What a worker must stop from outside, and what no pure Python code can be made to do.
STOPPED = {"timeout", "memory"}
TEXTS = [(text, pattern) for pattern in PATTERNS for text in pattern.explanations]
RUNNABLE = [text for text, _ in TEXTS if text.example and text.name not in STOPPED]


def raised_by(code: str) -> BaseException:
    """What the code raises."""
    try:
        exec(compile(code, FILE, "exec"), {"__name__": "example"})
    except BaseException as error:
        return error
    raise AssertionError(f"this does not fail: {code!r}")


def failure_of(code: str) -> Failure:
    """Run the code here, and take its failure as a worker would."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an example may be bad style too
        error = raised_by(code)
    innermost, told = None, error.__traceback__
    while told is not None:
        innermost = told if told.tb_frame.f_code.co_filename == FILE else innermost
        told = told.tb_next
    near, known = suggestions(error, innermost)
    kind = type(error)
    ename = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    text = "".join(read_traceback(error).format())
    return Failure("TOOL_EXCEPTION", ename, str(error), text, near=near, known=known)


@pytest.mark.requirement("FACE-7")
@pytest.mark.parametrize("row", RUNNABLE, ids=lambda row: row.name)
def test_each_row_explains_the_real_failure_of_its_example(row):
    explanation = explain(failure_of(row.example))
    assert explanation.rule == row.name
    assert explanation.what.endswith((".", ":", "?"))
    for _, text in explanation.steps():
        assert "{" not in text.replace("{value}", "").replace("`{`", "")
        assert "``" not in text


def test_numbers_and_nouns_agree():
    assert (
        explain(failure_of("x, = [1, 2]")).what
        == "The left of `=` has 1 name, and the right has more values."
    )
    assert explain(failure_of("x, = []")).what == "It takes 1 value, and there were 0."
    assert "given 1 value and takes" in explain(failure_of("def f(): pass\nf(1)")).what


def test_explanations_have_unique_names_and_examples():
    names = [text.name for text, _ in TEXTS]
    assert len(names) == len(set(names))
    assert len(RUNNABLE) >= 100
    without = {text.name for text, _ in TEXTS if not text.example}
    ours = {text.name for text, pattern in TEXTS if set(pattern.enames) <= set(TOOL_CODES)}
    assert without <= ours


def test_a_message_pattern_is_written_once():
    told = [pattern for pattern in PATTERNS if pattern.message.strip("(?P<what>.*)")]
    rows = [(ename, pattern.message) for pattern in told for ename in pattern.enames]
    assert len(rows) == len(set(rows))


def test_every_ending_of_an_execution_is_explained():
    for code in set(TOOL_CODES) - {"TOOL_EXCEPTION"}:
        assert explain(Failure(code, "Ending", "it ended", "")).rule != "any", code


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("prices = {'apple': 3}\nprices['aple']", "`apple`"),
        ("shelf = {'fruit': {'apple': 3}}\nshelf['fruit']['aple']", "`apple`"),
        ("def area(width):\n    pass\narea(widht=1)", "`width`"),
        ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales['unit']", "`units`"),
        ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales.unit", "`units`"),
        ("class Basket:\n    def __init__(self):\n        self.items = []\nBasket().itens", "`items`"),
    ],
)
def test_similar_names_are_suggested(code, said):
    assert said in explain(failure_of(code)).why


def test_private_keys_are_not_shown():
    failure = failure_of("d = {'ada@example.org': 1, 'k9X2mQ7vRt4LpZ81': 2, 'plain': 3}\nd['ada@example.or']")
    assert failure.near == []
    assert failure.known == ["plain"]


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
    code = "class Key:\n    def __str__(self):\n        raise SystemExit\n    __repr__ = __str__\n{'a': 1}[Key()]"
    error = raised_by(code)
    assert suggestions(error, error.__traceback__) == ([], [])


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
    assert explanation.where == "Line 2 of a@1, in a: `b()`"


def test_an_unknown_failure_is_shown_as_it_is():
    explanation = explain(Failure("TOOL_EXCEPTION", "some.Odd", "very odd {braces}", ""))
    assert explanation.rule == "any"
    assert explanation.what == "Odd: very odd {braces}"

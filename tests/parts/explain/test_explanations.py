"""Explanations: every row explains its own example's failure."""

from __future__ import annotations

import re
import sys

import msgspec
import pytest
from library_failures import by_weight, run_code

from healkit.core.contracts.explanation import LEVELS
from healkit.core.contracts.failure import Failure, Frame
from healkit.errors import TOOL_CODES
from healkit.errors import catalogue as error_codes
from healkit.parts.explain.catalogue import FailurePattern, patterns, subjects
from healkit.parts.explain.explanation import MatchedFailure, explain, filled_in, holds
from healkit.parts.explain.facts.observers import suggestions
from healkit.parts.explain.fixes import change_of, explained, proposals
from healkit.parts.explain.site import Site
from healkit.parts.explain.source import Source

#: What a worker must stop from outside, and what no pure Python code can be made to do.
STOPPED = {"timeout", "memory"}
#: Those for facts have their examples in `notebook_failures.toml`.
OBSERVED = {text.name: text for subject in subjects().values() for text in subject.facts}
TEXTS = [(text, pattern) for pattern in patterns() for text in pattern.texts]
TEXTS += [(text, FailurePattern()) for text in OBSERVED.values()]
#: Messages that later versions of Python do not have.
GONE = {"random_float"} if sys.version_info >= (3, 12) else set()
RUNNABLE = [text for text, _ in TEXTS if text.example and text.name not in {*STOPPED, *GONE}]
BY_WEIGHT = by_weight(RUNNABLE)


def failure_of(code: str, *, facts: bool = True) -> Failure:
    """Run the code here, and take its failure as a worker would; without facts, as one that is only text."""
    failure = run_code(code).failure
    return failure if facts else msgspec.structs.replace(failure, facts={})


@pytest.mark.requirement("FACE-7")
@pytest.mark.requirement("MEAN-6")
@pytest.mark.parametrize("rows", BY_WEIGHT)
def test_each_row_explains_the_real_failure_of_its_example(rows):
    """Also where the types of the values are known, of which the row claims something."""
    wrong = []
    for row in rows:
        failure = failure_of(row.example)
        kinds = {name: fact for name, fact in failure.facts.items() if "kinds" in failure.facts}
        for facts in ({}, kinds):
            explanation = explain(msgspec.structs.replace(failure, facts=facts))
            said = f"{explanation.what} {explanation.why} {explanation.hint} {explanation.fix}"
            if (
                explanation.rule != row.name
                or not explanation.what.endswith((".", ":", "?"))
                or re.search(r"\{[a-z_]+(?::\w+)?\}|``", said.replace("{value}", ""))
            ):
                wrong.append((row.name, explanation))
        if not holds(row, msgspec.structs.replace(failure, facts=kinds)):
            wrong.append((row.name, row.claim, kinds))
    assert wrong == []


@pytest.mark.requirement("FACE-7")
def test_no_row_has_a_sentence_with_an_empty_place():
    """With a group that matched nothing, a sentence read `'…' does not match the expected format .`"""
    wrong = []
    for text, _ in TEXTS:
        steps = (text.what, text.why, text.hint, text.fix)
        places = set(re.findall(r"\{(\w+)", " ".join(steps)))
        for empty in sorted(places):
            fields = {name: f"<{name}>" for name in places} | {empty: ""}
            said = [filled_in(step, fields) for step in steps]
            wrong += [
                (text.name, empty, one) for one in said if re.search(r"``(?!`)|  | [.,;:?](?: |$)| $", one)
            ]
    assert wrong == []


def test_numbers_and_nouns_agree():
    assert explain(failure_of("x, = [1, 2]")).what == "`[1, 2]` has 2 values, but the left side has 1 name."
    assert explain(failure_of("x, = []", facts=False)).what == "The code expects 1 value but got 0."
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


#: Code that fails, and the name that is suggested.
SIMILAR = [
    ("prices = {'apple': 3}\nprices['aple']", "`'apple'`"),
    ("shelf = {'fruit': {'apple': 3}}\nshelf['fruit']['aple']", "`'apple'`"),
    ("def area(width):\n    pass\narea(widht=1)", "`width`"),
    ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales['unit']", "`'units'`"),
    ("import pandas as pd\nsales = pd.DataFrame({'units': [1]})\nsales.unit", "`'units'`"),
    ("class Basket:\n    def __init__(self):\n        self.items = []\nBasket().itens", "`items`"),
]


def test_similar_names_are_suggested():
    for code, said in SIMILAR:
        explanation = explain(failure_of(code))
        assert said in explanation.what + explanation.why, code


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


#: Code that fails, and what its explanation ends in; empty where what is right depends on what is meant.
ENDINGS = {
    "a name, by its subscript": ("orders = {'a': 1}\norder['a']", "orders['a']"),
    "a name, by its attribute": ("import collections\ncollection.Counter()", "collections.Counter()"),
    "an exception": ("try:\n    1 / 0\nexcept ZeroDivisonError:\n    pass", "except ZeroDivisionError:"),
    "a method": ("xs = [1]\nif xs:\n    xs.apend(2)", "xs.append(2)"),
    "a key": ("prices = {'apple': 3}\nprint(prices['aple'])", "print(prices['apple'])"),
    "a missing import": ("print(math.sqrt(4))", "import math"),
    "several lines": ("total = 1\nprint(\n    totl,\n)", "    total,"),
    "an await at the top": ("async def f():\n    pass\nxs = [1]\nxs.apend(2)\n", "xs.append(2)"),
    "two names": ("results, resultt = 1, 2\nresult", ""),
    "two ways": ("'3' + 4", ""),
}


@pytest.mark.requirement("FACE-11")
def test_an_explanation_ends_in_the_code_that_healing_would_try_first():
    for name, (code, ending) in ENDINGS.items():
        matched = MatchedFailure(failure_of(code))
        assert explained(matched.failure, "", code).code == ending.strip(), name
        change = change_of(matched, code)
        made = [made for _, _, made in proposals(Site(Source(code), "", matched))]
        assert change is None if ending == "" else change.code in made, name


@pytest.mark.parametrize(
    "code",
    ["%matplotlib inline\ntotal = 1\n!ls\nprint(totl)", "total = 1\nawait something\nprint(totl)", ""],
    ids=["magics", "await", "not at hand"],
)
def test_a_cell_is_changed_as_it_was_typed(code):
    line = code.count("\n") + 1
    frame = Frame("<In [3]>", line, "<module>", "print(totl)", in_tool=True)
    failure = Failure(
        "TOOL_EXCEPTION", "NameError", "name 'totl' is not defined", "", [frame], near=["total"]
    )
    change = change_of(MatchedFailure(failure), code)
    assert change.lines == "print(total)"
    assert change.code == (code or "print(totl)").replace("totl)", "total)")


#: Code that Python cannot read, and its repair; empty where more than one is likely.
REPAIRED = {
    "print(“hello”)": 'print("hello")',
    "x = 3 – 2": "x = 3 - 2",
    "if True\n    pass": "if True:",
    "%matplotlib inline\nprint 'a'": "print('a')",
    "print(1 2)": "print(1, 2)",
    "f'{}'": "",
    "True = 1": "",
}


def test_code_that_python_cannot_read_is_repaired_where_one_repair_is_likeliest():
    assert {code: explained(failure_of(code), "", code).code for code in REPAIRED} == REPAIRED


def test_the_line_of_another_cell_is_shown_alone():
    frame = Frame("<In [2]>", 2, "f", "    for x in totl:", in_tool=True)
    failure = Failure(
        "TOOL_EXCEPTION", "NameError", "name 'totl' is not defined", "", [frame], near=["total"]
    )
    assert explained(failure, "", "f()\n").code == "for x in total:"


MEANT = {
    "builtins only when called": ("orders = {'a': 1}\norder['a']", ["orders"]),
    "a call": ("pritn(1)", ["print"]),
    "a function in a loop": ("for i in rnage(3): pass", ["range"]),
    "a type": ("isinstance(3, strr)", ["str"]),
    "the dict with that key": ("ordered, orders = {'b': 1}, {'a': 1}\norder['a']", ["orders"]),
    "the frame with that column": (
        "import pandas as pd\nordered, orders = pd.DataFrame({'b': [1]}), pd.DataFrame({'a': [1]})\norder['a']",
        ["orders"],
    ),
    "an object with that attribute": ("import math\nmaths = 3\nmat = 2\nmth.sqrt(4)", ["math"]),
    "an accent": ("naïve = 1\nprint(naive)", ["naïve"]),
    "nothing that can be called": ("order = 3\norders(1)", []),
    "nothing of that attribute": ("df = 3\ndff.head()", []),
    "no builtin for a value": ("print(lst)", []),
}


def test_a_name_is_suggested_by_what_is_done_with_it():
    for name, (code, names) in MEANT.items():
        failure = failure_of(code)
        assert failure.near == names, name
        assert ("Did you mean" in explain(failure).what) == bool(names), name


def test_a_level_hides_the_steps_after_it():
    whole = explain(msgspec.structs.replace(failure_of("1 / 0"), frames=[]))
    assert [level for level in LEVELS[1:] if getattr(whole.at(level), level)] == [
        "what",
        "why",
        "hint",
        "fix",
    ]
    hint = whole.at("hint")
    assert hint.hint
    assert not hint.fix
    misspelt = explained(failure_of("total = 1\ntotl"))
    assert (misspelt.code, misspelt.at("hint").code) == ("total", "")
    assert not list(whole.at("off").steps())


def test_the_place_is_the_innermost_own_line():
    frames = [Frame("<a@1>", 2, "a", "  b()", in_tool=True), Frame("/lib/x.py", 3, "x", "y")]
    explanation = explain(Failure("TOOL_EXCEPTION", "ZeroDivisionError", "division by zero", "", frames))
    assert explanation.where == "Line 2 of a v1, in a: `b()`"


def test_an_unknown_failure_is_shown_as_it_is():
    explanation = explain(Failure("TOOL_EXCEPTION", "some.Odd", "very odd {braces}", ""))
    assert explanation.rule == "any"
    assert explanation.what == "Odd: very odd {braces}"

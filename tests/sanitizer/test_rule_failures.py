"""Rules that fail: a mistake costs the piece it is made on, and nothing beside it."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healkit.sanitizer import Sanitizer
from healkit.sanitizer.matcher import Matcher
from healkit.sanitizer.rule import SanitizerRule, Span, expand
from healkit.sanitizer.tables import rules_for
from healkit.sanitizer.traversal import Traversal

RULES = rules_for("US")
TRACE_2 = pytest.mark.requirement("TRACE-2")
TEMPLATES = [template for rule in RULES for template in (*rule.caught, *rule.survives)]
BASE64_CUT = "cert: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSU"
SECRET = "password=Tr0ub4dor&3"
#: What a mutation puts in: line ends, escapes, digits that are no ASCII, half a surrogate pair.
PUT_IN = (
    "",
    " ",
    "\n",
    "\\n",
    "\0",
    "=",
    "@",
    ".",
    "-",
    '"',
    "'",
    "²",
    "٤",
    "İ",
    "ſ",
    "é",
    "\ud800",
    "a1B2" * 20,
)


class Faults:
    """The whole table, with every exception of a rule's own functions noted before it is passed on."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.matcher = Matcher([self._watched(rule) for rule in RULES])

    def _watched(self, rule: SanitizerRule) -> SanitizerRule:
        def watched(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                try:
                    return function(*arguments)
                except Exception as error:
                    self.found.append(f"{rule.id}: {error!r}")
                    raise

            return call

        changes = {name: watched(own) for name in ("check", "locate") if (own := getattr(rule, name))}
        return dataclasses.replace(rule, **changes)


FAULTS = Faults()


@TRACE_2
def test_an_unreadable_piece_of_base64_costs_itself_only() -> None:
    """Audit R2."""
    cleaned = Sanitizer().clean({"note": BASE64_CUT, "line": SECRET, "n": 1})
    assert cleaned.value == {"note": BASE64_CUT, "line": "password=[REDACTED:secret-name]", "n": 1}
    assert cleaned.hidden == {"secret-name": 1}


@TRACE_2
@pytest.mark.parametrize("template", TEMPLATES)
def test_no_rule_raises_on_any_beginning_or_end_of_an_example(template: str) -> None:
    """Audit R2."""
    FAULTS.found.clear()
    text = expand(template, random.Random(1))
    step = 1 + len(text) // 100
    for cut in range(0, len(text) + 1, step):
        FAULTS.matcher.find(text[:cut])
        FAULTS.matcher.find(text[cut:])
    assert FAULTS.found == []


@TRACE_2
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TEMPLATES), st.randoms(use_true_random=False))
def test_no_rule_raises_on_a_mutated_example(template: str, source: random.Random) -> None:
    """Audit R2."""
    text = expand(template, source)
    for _ in range(source.randint(1, 4)):
        start = source.randrange(len(text) + 1)
        text = text[:start] + source.choice(PUT_IN) + text[start + source.randrange(4) :]
    FAULTS.found.clear()
    FAULTS.matcher.find(text)
    assert FAULTS.found == [], text


def raising(*_: object) -> Any:
    raise RuntimeError("a mistake in the rule")


def lookup_error(text: str, start: int, end: int) -> Span | None:
    raise IndexError(text[start:end])


def broken_rules() -> Iterator[SanitizerRule]:
    """One rule of each form that raises wherever it is tried."""
    yield SanitizerRule("broken-check", "", "token", ("zebra",), r"zebra-\w+", check=raising)
    yield SanitizerRule("broken-locate", "", "place", ("giraffe",), locate=lookup_error)
    yield SanitizerRule("broken-search", "", "token", pattern=r"lion-\w+", check=raising)
    yield SanitizerRule("broken-number", "", "token", pattern=r"\d{9}", check=raising, among_numbers=True)


@TRACE_2
def test_a_rule_that_raises_hides_what_it_cannot_judge_and_leaves_the_rest_to_the_others() -> None:
    """Audit R2."""
    sanitizer = Sanitizer(rules=tuple(broken_rules()))
    text = f"a zebra-77, a giraffe:99 and a lion-8. 012345678 {SECRET} jane@example.com end"
    cleaned = sanitizer.clean({"text": text, "other": [SECRET, 5]})
    assert cleaned.value["text"] == (
        "a [REDACTED:broken-check], a [REDACTED:broken-locate] and a [REDACTED:broken-search]. "
        "[REDACTED:broken-number] password=[REDACTED:secret-name] [EMAIL] end"
    )
    assert cleaned.value["other"] == ["password=[REDACTED:secret-name]", 5]


class Unreadable(dict[str, str]):
    """A part of a value that cannot be walked, as `to_jsonable` never makes one."""

    def keys(self) -> Any:
        raise RuntimeError("no")


@TRACE_2
def test_a_part_that_cannot_be_walked_costs_itself_only() -> None:
    """Audit R2."""
    walk = Traversal(Matcher(RULES))
    cleaned = walk.value({"part": Unreadable(), "line": SECRET})
    assert "Unreadable" in cleaned["part"]
    assert cleaned["line"] == "password=[REDACTED:secret-name]"
    assert walk.hidden == {"unreadable": 1, "secret-name": 1}


@TRACE_2
def test_a_custom_rule_that_fails_on_a_line_costs_that_line() -> None:
    """Audit R2: google-re2 refuses half a surrogate pair."""
    rule = SanitizerRule("badge", "", "place", pattern=r"AB-\d{4}", custom=True)
    text = f"badge AB-1234\nbroken \ud800 AB-5678\n{SECRET} AB-9999"
    lines = Sanitizer(rules=(rule,)).text(text).value.splitlines()
    assert lines[0] == "badge [REDACTED:badge]"
    assert "5678" not in "".join(lines)
    assert lines[-1] == "password=[REDACTED:secret-name] [REDACTED:badge]"


def test_base64_of_a_private_key_is_hidden_however_it_is_cut() -> None:
    """Audit R2."""
    text = expand("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp‹b80›", random.Random(3))
    for cut in range(40, len(text)):
        assert re.fullmatch(r"\[REDACTED:private-key-base64\]", Sanitizer().text(text[:cut]).value), cut


class Work:
    """The whole table, with the characters counted that each rule's own functions and patterns are given to judge."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.matcher = Matcher([self._counted(rule) for rule in RULES])

    def _counted(self, rule: SanitizerRule) -> SanitizerRule:
        own = rule.check

        def check(match: re.Match[str]) -> bool:
            self.calls[rule.id] += 1
            return own is None or own(match)

        return dataclasses.replace(rule, check=check) if rule.pattern else rule

    def done(self, text: str) -> Counter[str]:
        self.calls.clear()
        self.matcher.find(text)
        return Counter(self.calls)


PREFIXES = sorted({keyword for rule in RULES if rule.kind == "token" for keyword in rule.keywords})


@TRACE_2
def test_a_refused_match_is_not_judged_again_at_each_prefix_in_it() -> None:
    """Audit R8: 4.8 MB of `sk-sk-…` took the collector 35 s."""
    work = Work()
    for prefix in ("sk-", "pa-", "fc-", "xai-", "glpat-", "xoxb-"):
        for size in (4_000, 16_000):
            assert work.done(prefix * (size // len(prefix))).total() <= size / 20, prefix


@TRACE_2
def test_the_work_of_every_rule_grows_no_faster_than_the_text() -> None:
    """Audit R8."""
    work = Work()
    for prefix in PREFIXES:
        short, long = (work.done(prefix * (size // len(prefix))).total() for size in (3_000, 12_000))
        assert long <= 4 * short + 40, prefix


@pytest.mark.parametrize("prefix", ["sk-sk-sk-", "sk-learn-", "xai-and-pa-"])
def test_a_token_behind_prefixes_without_one_is_still_hidden(prefix: str) -> None:
    for seed in range(20):
        token = expand("sk-proj-‹s74›T3BlbkFJ‹s74›", random.Random(seed))
        for text in (
            f"{prefix}{token}",
            f"{prefix} {token}",
            f"{prefix * 9} {token}",
            f"{prefix * 3}/{token}",
        ):
            assert token[8:] not in Sanitizer().text(text).value, text

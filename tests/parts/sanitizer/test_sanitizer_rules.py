"""Table of rules, each proven by its own examples."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from healkit.parts.sanitizer.matcher import Matcher
from healkit.parts.sanitizer.rule import SanitizerRule, expand
from healkit.parts.sanitizer.sanitizer import rules_for

RULES = rules_for("US")
WHOLE = Matcher(RULES)
FILLINGS = range(8)
TRACE_2 = pytest.mark.requirement("TRACE-2")

#: What real lines look like that surround a value.
SURROUNDINGS = (
    "{}", "INFO sent {} to the server", '{{"value": "{}"}}', "first\\n{}\\nlast", "f('{}')", "[{}]",
)  # fmt: skip


def cases(kind: str) -> list[object]:
    return [
        pytest.param(rule, template, id=f"{rule.id}-{number}")
        for rule in RULES
        for number, template in enumerate(getattr(rule, kind))
    ]


@TRACE_2
@pytest.mark.parametrize(("rule", "template"), cases("caught"))
def test_each_rule_catches_its_examples_alone_and_among_all_others_once(
    rule: SanitizerRule, template: str
) -> None:
    alone = Matcher((rule,))
    for seed in FILLINGS:
        text = expand(template, random.Random(seed))
        assert alone.find(text), text
        assert WHOLE.find(text), text
        assert WHOLE.find(cleaned := WHOLE.text(text, Counter())) == [], cleaned


@TRACE_2
@pytest.mark.parametrize(("rule", "template"), cases("survives"))
def test_look_alikes_survive_every_rule(rule: SanitizerRule, template: str) -> None:
    for seed in FILLINGS:
        text = expand(template, random.Random(seed))
        assert [(found.rule.id, text[found.start : found.end]) for found in WHOLE.find(text)] == []


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.kind == "token"], ids=lambda rule: rule.id)
def test_a_token_is_found_wherever_it_stands(rule: SanitizerRule) -> None:
    template = rule.caught[0]
    for seed, surrounding in enumerate(SURROUNDINGS):
        text = surrounding.format(expand(template, random.Random(seed)))
        assert WHOLE.find(text), text


def test_every_rule_has_a_unique_id_a_description_and_examples() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids)) > 100
    assert sum(rule.kind == "token" and "-" in rule.id for rule in RULES) >= 40  # providers
    for rule in RULES:
        assert rule.what
        assert rule.survives, rule.id
        assert rule.caught or rule.id == "phone-region", rule.id  # that one depends on the region, see below
        assert all(keyword == keyword.lower() for keyword in rule.keywords), rule.id
        assert bool(rule.pattern) != bool(rule.locate), rule.id


@TRACE_2
@pytest.mark.parametrize(
    ("region", "number"),
    [("DE", "030 901820"), ("GB", "020 7946 0958"), ("FR", "01 42 68 53 00"), ("AU", "(02) 9374 4000")],
)
def test_national_phone_numbers_are_read_in_the_configured_region(region: str, number: str) -> None:
    matcher = Matcher(rules_for(region))
    assert [found.rule.id for found in matcher.find(f"reach us under {number} today")] == ["phone-region"]
    assert WHOLE.find(f"sizes {number}") == []


@TRACE_2
def test_the_most_specific_rule_names_what_was_hidden() -> None:
    token = expand("ghp_‹w36›", random.Random(0))
    (found,) = WHOLE.find(f'GITHUB_TOKEN="{token}"')
    assert found.rule.id == "github-token"


@TRACE_2
def test_a_real_format_is_hidden_though_it_calls_itself_an_example() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    assert WHOLE.find(key)
    assert WHOLE.find("password=changeme-Tr0ub4dor")
    assert WHOLE.find("password=changeme")
    assert not WHOLE.find("password=your-password")

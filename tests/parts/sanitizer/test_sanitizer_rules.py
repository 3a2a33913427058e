"""Table of rules, each proven by its own examples."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from healkit.parts.sanitizer import assignments, private_keys, secret_values, syntaxes
from healkit.parts.sanitizer.matcher import Matcher
from healkit.parts.sanitizer.rule import expand
from healkit.parts.sanitizer.sanitizer import rules_for

RULES = rules_for("US")
WHOLE = Matcher(RULES)
FILLINGS = range(3)
TRACE_2 = pytest.mark.requirement("TRACE-2")

#: What real lines look like that surround a value.
SURROUNDINGS = (
    "{}", "INFO sent {} to the server", '{{"value": "{}"}}', "first\\n{}\\nlast", "f('{}')", "[{}]",
)  # fmt: skip


def expanded(templates: Iterable[str]) -> Iterator[str]:
    return (expand(template, random.Random(seed)) for template in templates for seed in FILLINGS)


@TRACE_2
def test_each_rule_catches_its_examples_alone_and_among_all_others_once() -> None:
    for rule in RULES:
        alone = Matcher((rule,))
        for text in expanded(rule.caught):
            assert alone.find(text), (rule.id, text)
            assert WHOLE.find(text), (rule.id, text)
            assert WHOLE.find(cleaned := WHOLE.text(text, Counter())) == [], (rule.id, cleaned)


@TRACE_2
def test_look_alikes_survive_every_rule() -> None:
    assert [
        (rule.id, found.rule.id, text[found.start : found.end])
        for rule in RULES
        for text in expanded(rule.survives)
        for found in WHOLE.find(text)
    ] == []


def test_a_token_is_found_wherever_it_stands() -> None:
    examples = [expand(rule.caught[0], random.Random(3)) for rule in RULES if rule.kind == "token"]
    texts = [surrounding.format(example) for example in examples for surrounding in SURROUNDINGS]
    assert [text for text in texts if not WHOLE.find(text)] == []


def test_each_form_of_a_pattern_takes_the_example_before_it() -> None:
    tables = {
        f"{module.__name__}.{name}": table
        for module in (assignments, private_keys, secret_values, syntaxes)
        for name, table in vars(module).items()
        if name.endswith("_FORMS")
    }
    assert len(tables) > 15
    for name, table in tables.items():
        for example, pattern in table.items():
            assert re.search(f"(?i){pattern}", example), (name, example)


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
def test_national_phone_numbers_are_read_in_the_configured_region() -> None:
    numbers = {"DE": "030 901820", "GB": "020 7946 0958", "FR": "01 42 68 53 00", "AU": "(02) 9374 4000"}
    for region, number in numbers.items():
        found = Matcher(rules_for(region)).find(f"reach us under {number} today")
        assert [span.rule.id for span in found] == ["phone-region"], region
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

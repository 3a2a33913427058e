"""Every row of the rules' tables, on a real failure of its own example."""

from __future__ import annotations

import ast
import dataclasses
import dbm
import sys
from pathlib import Path

import pytest
from rules_samples import case_of, declared, run

from healkit.healing.advisor import Case
from healkit.healing.rules import FAMILIES, RulesAdvisor
from healkit.healing.rules.advisor import PATCHES_MAX, fixes
from healkit.healing.rules.records import Example, Rule
from healkit.healing.rules.sites import Site

RULES = [rule for family in FAMILIES.values() for rule in family]
NAMES = [rule.name for rule in RULES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prices.csv").write_text("1\n")
    sys.modules.pop("dbm.dumb", None)  # an earlier test may have imported it
    vars(dbm).pop("dumb", None)
    return tmp_path


def filled(example: Example, folder: Path) -> Example:
    """The example with the test's own folder in it, where it is about files."""
    put = {field: getattr(example, field).replace("{folder}", str(folder)) for field in ("before", "after")}
    return dataclasses.replace(example, **put)


def case_for(rule: Rule, example: Example, folder: Path) -> Case:
    """The example's case; a rule for wrong values gets one without a failure."""
    checks = [] if example.right is None else [declared(example.arguments, example.right)]
    case = case_of(example.before, example.arguments, *checks, folders=[str(folder)])
    if not rule.enames:
        assert case.failure is None, "it must not raise"
        return case
    assert case.failure is not None, "it must raise"
    return case


@pytest.mark.requirement("HEAL-2")
@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_each_row_mends_its_own_example(rule, folder):
    example = filled(rule.example, folder)
    case = case_for(rule, example, folder)
    made = [text for _, text in fixes(rule, Site(case, ast.parse(example.before)))]
    assert example.after in made
    proposed = [patch.code for patch in RulesAdvisor().propose(case)]
    assert example.after in proposed


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_each_row_leaves_its_lookalike_alone(rule, folder):
    example = filled(rule.lookalike, folder)
    case = case_for(rule, example, folder)
    assert rule.match(case.failure) is not None or rule.enames
    assert [text for _, text in fixes(rule, Site(case, ast.parse(example.before)))] == []


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_what_a_row_makes_of_its_example_no_longer_fails_so(rule, folder):
    example = filled(rule.example, folder)
    _, before = run(example.before, example.arguments)
    _, after = run(example.after, example.arguments)
    assert after is None or before is None or (after.ename, after.evalue) != (before.ename, before.evalue)


def test_rows_have_names_of_their_own_and_say_what_they_mend():
    assert len(set(NAMES)) == len(NAMES)
    assert all(rule.mends and not rule.mends.endswith(".") for rule in RULES)
    assert all(0 < rule.priority < 1 for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_patches_come_best_first_guards_last_and_few(rule, folder):
    example = filled(rule.example, folder)
    patches = list(RulesAdvisor().propose(case_for(rule, example, folder)))
    assert 0 < len(patches) <= PATCHES_MAX
    assert patches == sorted(patches, key=lambda patch: (patch.guard, -patch.rank))
    assert len({patch.code for patch in patches}) == len(patches)
    assert all(patch.reason.endswith(".") and "\n" not in patch.reason for patch in patches)
    assert all((patch.advisor, patch.author) == ("rules", "rule") for patch in patches)

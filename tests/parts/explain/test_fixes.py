"""Fixes: each fixes its example and spares its lookalike."""

from __future__ import annotations

import dbm
import itertools
import re
import sys
from pathlib import Path

import msgspec
import pytest
from failing_tools import case_of, declared, run
from library_failures import by_weight

from healkit.parts.explain.catalogue import NO_EXCEPTION, FixExample, patterns, subjects
from healkit.parts.explain.fixes import FIXES, ROWS, fixes_for, proposals_of
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.advisors.simple import PATCHES_MAX, RulesAdvisor, site_of

#: Those that are for tools that return a wrong result.
QUIET = {name for pattern in patterns() if NO_EXCEPTION in pattern.raises for name in pattern.fixes}


#: Rows of facts whose change depends on what you mean, or lies outside the failing line.
BY_A_PERSON = frozenset((
    "position_past_end", "position_of_none", "concat_nothing", "labels_twice", "column_length",
    "column_lengths", "too_few_names", "filter_length", "infinite", "wrong_fill", "chained", "axis", "mask",
    "ragged", "singular", "not_square", "no_values", "features_gaps", "values_gaps", "not_fitted",
    "text_features", "unseen_label", "unknown_category", "feature_names", "feature_order", "feature_count",
    "continuous", "no_samples", "folds", "mixed_targets", "package_other", "package_same",
    "attribute_of_none_named", "attribute_of_gap", "none_item", "none_loop", "item_past_end", "item_of_none",
    "none_to_number", "divisor", "divisor_length", "no_processes", "shadowed", "no_such_day",
    "pattern", "day_of_month", "moment_and_number", "moment_and_text", "name_in_class_body", "unbound_branch", "prints_only",
    "unpack_count", "no_command", "get_nothing", "search_nothing", "class_for_object", "super_init", "name_of_except", "name_of_function", "sum_of_words",
    "accessor_of_itself", "bytes_cut", "bytes_no_text", "enum_name", "half_character", "hash_of_dataclass",
    "hash_of_own", "inside_library", "json_bare_name", "json_comma", "json_comma_last", "json_comment", "json_escape",
    "json_extra", "json_nothing", "json_single", "json_word", "method_on_class", "order_of_dataclass", "order_of_own",
    "polars_rows", "slots", "static_self",
))  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prices.csv").write_text("1\n")
    return tmp_path


def without_dumb() -> None:
    """Forget a module that an earlier example may have imported."""
    sys.modules.pop("dbm.dumb", None)
    vars(dbm).pop("dumb", None)


def filled(example: FixExample, folder: Path) -> FixExample:
    """Return the example with the test's own folder in it, where it is about files."""
    put = {field: getattr(example, field).replace("{folder}", str(folder)) for field in ("before", "after")}
    return msgspec.structs.replace(example, **put)


def case_for(name: str, example: FixExample, folder: Path) -> Case:
    """Return the example's case; a fix for wrong results gets one without a failure."""
    checks = [] if example.right is None else [declared(example.arguments, example.right)]
    case = case_of(example.before, example.arguments, *checks, folders=[str(folder)])
    if name in QUIET:
        assert case.failure is None, "it must not raise"
        return case
    assert case.failure is not None, "it must raise"
    return case


def made_by(name: str, case: Case) -> list[str]:
    """Return the codes that this fix makes of the case's."""
    site = site_of(case)
    return [
        code
        for one, match in fixes_for(site)
        if one == name
        for _, code in proposals_of(name, match, site)  # which lets a fix that raises be seen
    ]


def check_example(name: str, folder: Path) -> None:
    """The example fails as its pattern says; its patches are few, the likeliest first, guards last."""
    example = filled(ROWS[name].example, folder)
    case = case_for(name, example, folder)
    assert example.after in made_by(name, case)
    patches = list(RulesAdvisor().propose(case))
    assert example.after in [patch.code for patch in patches]
    assert len(patches) <= PATCHES_MAX
    assert patches == sorted(patches, key=lambda patch: (patch.guard, -patch.rank))
    assert len({patch.code for patch in patches}) == len(patches)
    assert all(patch.reason.endswith(".") and "\n" not in patch.reason for patch in patches)
    assert all((patch.advisor, patch.author) == ("rules", "rule") for patch in patches)
    _, after = run(example.after, example.arguments)
    before = case.failure
    assert after is None or before is None or (after.ename, after.evalue) != (before.ename, before.evalue)


def check_lookalike(name: str, folder: Path) -> None:
    """A tool with the same failure and another mistake is left alone."""
    assert made_by(name, case_for(name, filled(ROWS[name].lookalike, folder), folder)) == []


@pytest.mark.requirement("HEAL-2")
@pytest.mark.parametrize("names", by_weight(ROWS, lambda name: ROWS[name].example.before))
def test_each_fix_repairs_its_example_and_leaves_its_lookalike_alone(names, folder):
    wrong = []
    for name in names:
        for check in (check_example, check_lookalike):
            without_dumb()
            try:
                check(name, folder)
            except AssertionError as error:
                wrong.append((name, str(error)))
    assert wrong == []


@pytest.mark.parametrize("line", ["d[1:3] = [7]", "del d[1:]", "d[1:] += [7]"])
def test_a_change_of_a_deques_slice_is_not_made_to_a_copy(folder, line):
    """It ran, and changed nothing."""
    code = f"from collections import deque\ndef tool(a):\n    d = deque(a)\n    {line}\n    return d\n"
    case = case_of(code, {"a": [1, 2, 3]}, folders=[str(folder)])
    assert "sequence index must be integer" in case.failure.evalue
    assert made_by("deque_slice", case) == []


def test_fixes_have_unique_names_and_name_their_mistake():
    named = [name for subject in subjects().values() for name in subject.fix]
    assert len(named) == len(ROWS) > 80
    told = {name for subject in subjects().values() for text in subject.facts for name in text.fixes}
    named = {name for pattern in patterns() for name in pattern.fixes}
    assert ROWS.keys() == FIXES.keys() == named | told | {"as_explained"}
    assert all(fix.mistake and not fix.mistake.endswith(".") for fix in ROWS.values())
    assert all(0 < fix.priority < 1 for fix in ROWS.values())


@pytest.mark.requirement("HEAL-8")
def test_each_row_that_names_a_change_has_it():
    """Explanation and healing read one row."""
    rows = [text for subject in subjects().values() for text in subject.facts if text.fix]
    untried = {text.name for text in rows if not text.edits and not text.fixes}
    assert untried == BY_A_PERSON
    for text in rows:
        places = set(re.findall(r"\{(\w+)", "".join(itertools.chain(*text.edits))))
        assert places <= set(re.findall(r"\{(\w+)", text.what + text.why + text.fix)) | {"part", "given"}, (
            text.name
        )


def test_no_subject_is_empty():
    assert all(subject.failure for subject in subjects().values())

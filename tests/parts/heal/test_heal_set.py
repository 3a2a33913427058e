"""Broken tools that healing is measured on."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from healkit.core.crossing import values
from healkit.parts.trials.trials import Trial

ROOT = Path(__file__).parents[3]
BENCHMARKS = ROOT / "benchmarks"
SCORER = BENCHMARKS / "heal" / "scoring.py"
written_sets = pytest.mark.parametrize(
    "set_name", ["own", "frames", "dev", "fresh", "held_out", "sealed", "blind", "calls"]
)
#: How many tools a set that is not `own` has, how many of them have two bugs and how many three, and at least how many
#: one bug in several places.
unseen_sets = pytest.mark.parametrize(
    ("set_name", "tools", "two_bugs", "three_bugs", "several_places"),
    [("fresh", 60, 10, 0, 8), ("held_out", 40, 5, 0, 5), ("sealed", 60, 14, 2, 5), ("blind", 80, 15, 0, 5)],
)


@pytest.fixture(scope="module")
def heal():
    """Import the benchmark's modules, which are scripts' and not the package's."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from heal import programs, scoring
    finally:
        sys.path.remove(str(BENCHMARKS))
    return programs, scoring


@pytest.fixture(scope="module")
def judge(heal: Any, tmp_path_factory: pytest.TempPathFactory):
    with heal[1].Judge(tmp_path_factory.mktemp("judge")) as judge:
        yield judge


@unseen_sets
def test_an_untuned_set_shares_no_tool_with_other_sets(
    heal, set_name, tools, two_bugs, three_bugs, several_places
):
    chosen = heal[0].written(set_name)
    assert len(chosen) == tools
    written = [program for name in heal[0].WRITTEN if name != set_name for program in heal[0].written(name)]
    assert not {program.name for program in (*written, *heal[0].gallery())} & {
        program.name for program in chosen
    }
    assert all(2 <= len(program.code.splitlines()) <= 30 for program in chosen)
    bugs = Counter(program.bugs for program in chosen)
    assert bugs == Counter({1: tools - two_bugs - three_bugs, 2: two_bugs, 3: three_bugs})
    assert sum(program.bugs == 1 and program.places > 1 for program in chosen) >= several_places
    assert all(6 <= len(unseen) <= 15 for _, unseen in _with_unseen(heal, set_name))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_reference_passes_visible_and_hidden_examples(heal, judge):
    scoring = heal[1]
    cases = [
        (scoring.reference(program.name, set_name), program.name, [*program.examples, *unseen])
        for set_name in _without_calls(heal)
        for program, unseen in _with_unseen(heal, set_name)
    ]
    together = judge.run([_all_at_once(*case) for case in cases])
    left = [case for case, result in zip(cases, together, strict=True) if not _met(scoring, case[2], result)]
    assert len(left) < len(cases) / 2  # scripts, values outside JSON, calls: run each example alone
    alone = [(code, name, example) for code, name, examples in left for example in examples]
    results = zip(alone, judge.each(alone), strict=True)
    assert {name for (_, name, example), result in results if not scoring.met(example, result)} == set()


def _all_at_once(code, name, examples):
    """Return a trial of code whose value is the list of what it returns for each example."""
    given = [example.get("arguments") for example in examples]
    return Trial(code, name=name, call=f"[{name}(**given) for given in {given!r}]", timeout_s=30)


def _met(scoring, examples, result):
    if not result.ok or any(values.has_tags(example) for example in examples):
        return False
    each = [msgspec.structs.replace(result, value=value) for value in result.value]
    return len(each) == len(examples) and all(map(scoring.met, examples, each))


@written_sets
def test_every_draft_does_not_parse(heal, set_name):
    for program in heal[0].written(set_name):
        if program.draft:
            with pytest.raises(SyntaxError):
                compile(program.code, program.name, "exec")


@pytest.mark.slow
def test_every_broken_tool_fails_its_failing_example(heal, judge):
    programs = [
        program
        for set_name in _without_calls(heal)
        for program in heal[0].written(set_name)
        if not program.draft
    ]
    failing = [program.examples[program.failing] for program in programs]
    cases = ((one.code, one.name, given) for one, given in zip(programs, failing, strict=True))
    unbroken = []
    for program, given, result in zip(programs, failing, judge.each(cases, timeout_s=0.5), strict=True):
        shows = "wrong" if result.ok else "hangs" if "TIMEOUT" in result.failure.code else "raises"
        unbroken += [(program.name, shows)] * (heal[1].met(given, result) or shows != program.shows)
    assert unbroken == []


@pytest.mark.slow
def test_hidden_examples_of_an_untuned_set_refute_every_broken_tool(heal, judge):
    unrefuted = [
        (program, iter(unseen))
        for set_name in ("fresh", "held_out", "sealed", "blind")
        for program, unseen in _with_unseen(heal, set_name)
    ]
    assert len(unrefuted) == 240
    while unrefuted:
        given = [(program, unseen, next(unseen, None)) for program, unseen in unrefuted]
        assert not [program.name for program, _, example in given if example is None]
        results = judge.each(((program.code, program.name, one) for program, _, one in given), timeout_s=0.5)
        unrefuted = [
            (program, unseen)
            for (program, unseen, example), result in zip(given, results, strict=True)
            if heal[1].met(example, result)
        ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_tools_that_call_are_broken_and_their_references_right(heal, judge):
    """Each runs in the world of the set, the right code on all examples, the broken one until it is refuted."""
    scoring = heal[1]
    for program, unseen in _with_unseen(heal, "calls"):
        right = scoring.reference(program.name, "calls")
        assert all(
            _lived(heal, judge, right, program, one) == "right" for one in (*program.examples, *unseen)
        )
        assert _lived(heal, judge, program.code, program, program.examples[program.failing]) == program.shows
        assert any(_lived(heal, judge, program.code, program, one) != "right" for one in unseen), program.name


def _lived(heal, judge, code, program, example):
    done, _ = judge.live(code, program, example)
    assert done is not None, program.name
    return "right" if heal[1].met(example, done) else "wrong" if done.ok else "raises"


def _without_calls(heal):
    return [name for name in heal[0].WRITTEN if name != "calls"]


@written_sets
def test_hidden_examples_are_at_least_four_and_never_visible(heal, set_name):
    names = [program.name for program in heal[0].written(set_name)]
    assert list(heal[1].hidden_examples(set_name)) == names
    assert all(heal[1].reference(name, set_name) for name in names)
    for program, unseen in _with_unseen(heal, set_name):
        assert 1 <= len(program.examples) <= 5, program.name
        assert len(unseen) >= 4, program.name
        seen = [example["arguments"] for example in program.examples]
        assert not [example for example in unseen if example["arguments"] in seen], program.name


def test_every_data_file_belongs_to_a_set(heal):
    files = {path.relative_to(SCORER.parent).as_posix() for path in SCORER.parent.rglob("*.toml")}
    assert files == {f"{folder}/{name}.toml" for folder in ("sets", "hidden") for name in heal[0].WRITTEN}


def test_only_the_scorer_names_the_hidden_files():
    """Whoever builds a path to them has to name their folder or their file in a string."""
    naming = set()
    for top in ("healkit", "benchmarks"):
        for path in (ROOT / top).rglob("*.py"):
            texts = _strings(path) if b"hidden" in path.read_bytes() else set()
            named = any("hidden_examples" in text or "heal/hidden" in text for text in texts)
            if named or (top == "benchmarks" and "hidden" in texts):
                naming.add(path)
    assert naming == {SCORER}


def _strings(path: Path) -> set[str]:
    """Return the strings of a module's code, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    said = {node.value for node in nodes if isinstance(node, ast.Expr)}
    constants = (node.value for node in nodes if isinstance(node, ast.Constant) and node not in said)
    return {value for value in constants if isinstance(value, str)}


def _with_unseen(heal, set_name):
    hidden = heal[1].hidden_examples(set_name)
    return [(program, hidden[program.name]) for program in heal[0].written(set_name)]

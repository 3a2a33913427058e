"""Pages of the documentation, compared with the program."""

from __future__ import annotations

import ast
import fnmatch
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from site_pages import missing_from_shell
from test_readme import environment
from tiers import MARKERS, files_with_tests

from healkit.core.workers.inside import probe_main
from healkit.core.workers.tiers import NOT_STOPPED
from healkit.parts.explain import catalogue, fixes

ROOT = Path(__file__).parent.parent


@pytest.mark.requirement("WORK-3")
def test_the_isolation_page_names_all_that_each_tier_does_not_stop() -> None:
    page = (ROOT / "docs" / "isolation.md").read_text()
    for tier, sentences in NOT_STOPPED.items():
        assert f"`{tier}`" in page
        for sentence in sentences:
            assert f"\n- {sentence}\n" in page or f"\n| {sentence} |" in page, sentence


def test_the_isolation_page_shows_what_the_doctor_tries() -> None:
    page = (ROOT / "docs" / "isolation.md").read_text()
    shown = re.findall(r"^  ✓ a worker tries to (.+): denied$", page, re.MULTILINE)
    assert shown == re.findall(r'^        "(.+)": _try\(', inspect.getsource(probe_main), re.MULTILINE)


def test_every_dependency_has_its_reason_on_the_dependencies_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text().lower()
    wanted = project["dependencies"] + [
        d for extra in project["optional-dependencies"].values() for d in extra
    ]
    for requirement in wanted:
        name = re.split(r"[<>=;\[ ]", requirement)[0].lower()
        assert name in page, name


CONTRIBUTING, ARCHITECTURE, RECIPES, ADD_A_RULE = (
    (ROOT / "docs" / f"{name}.md").read_text()
    for name in ("contributing", "architecture", "recipes", "add_a_rule")
)
CODE_PAGES = CONTRIBUTING + ARCHITECTURE + RECIPES + ADD_A_RULE


def test_the_contributors_page_names_every_marker() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    registered = {marker.partition(":")[0].partition("(")[0] for marker in options["markers"]}
    told = set(re.findall(r"^\| `(\w+)` \|", CONTRIBUTING, re.MULTILINE))
    assert told == registered - {"requirement"}
    assert set(MARKERS) <= told


def test_the_contributors_pages_name_what_is_there() -> None:
    rules = re.findall(r"^([a-z0-9-]+)%?:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = set(re.findall(r"`make ([a-z-]+)", CODE_PAGES))
    assert targets
    assert [name for name in targets if not any(rule.startswith(name) for rule in rules)] == []
    paths = set(re.findall(r"\b((?:tests|healkit|docs|benchmarks|notebooks)/[\w/.]*\w)", CODE_PAGES))
    assert paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def _names_in(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the functions, classes, methods and constants of a module, as the pages name them."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _names_in(node.body, f"{prefix}{node.name}.")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.slow
def test_the_contributors_pages_name_only_functions_that_exist() -> None:
    named = re.findall(r"`(healkit/[\w/]+\.py):([\w.]+)`", CODE_PAGES)
    assert named
    there = {path: set(_names_in(ast.parse((ROOT / path).read_text()).body)) for path, _ in named}
    assert [f"{path}:{name}" for path, name in named if name not in there[path]] == []


def test_each_question_of_a_newcomer_is_answered_by_a_few_files() -> None:
    section = ARCHITECTURE.partition("## Where things are")[2].partition("\n## ")[0]
    items = re.findall(r"^- \*\*(.+\?)\*\* (.+(?:\n  .+)*)", section, re.MULTILINE)
    assert len(items) == 11
    for question, answer in items:
        assert len(set(re.findall(r"healkit/[\w/]+\.py", answer))) <= 4, question


@pytest.mark.parametrize(
    ("way", "begins", "ends", "files"),
    [
        ("From a tool's call to its answer", "Proxy", "CallRecords.end", 5),
        ("From a failure to its card", "to_failure", "html_of", 9),
        ("From a patch to a revision", "HealService.heal", "HealRecord", 12),
    ],
)
def test_the_architecture_page_walks_three_ways_through_a_few_files(
    way: str, begins: str, ends: str, files: int
) -> None:
    section = ARCHITECTURE.partition(f"## {way}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d\. .+(?:\n   .+)*", section, re.MULTILINE)
    assert begins in steps[0]
    assert ends in steps[-1]
    entered = set(re.findall(r"healkit/[\w/]+\.py", "\n".join(steps))) - {"healkit/faces/cli/run.py"}
    assert len(entered) <= files


def test_the_architecture_page_has_the_rooms_and_floors_of_the_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms, floors = (
        next(c["layers"] for c in contracts if c["type"] == "layers" and c["containers"] == [container])
        for container in ("healkit", "healkit.core")
    )
    told = re.findall(r"^\| `healkit/(\w+)(?:\.py)?` \|", ARCHITECTURE, re.MULTILINE)
    named = [part for room in rooms for part in re.split(r" [|:] ", room)]
    assert told[: len(named)] == named
    told = re.findall(r"^\| (\d) \| `healkit/core/(\w+)(?:\.py)?` \|", ARCHITECTURE, re.MULTILINE)
    for number, floor in enumerate(reversed(floors), start=1):
        assert {part for at, part in told if int(at) == number} == set(re.split(r" [|:] ", floor)), number
    assert len(told) == sum(len(re.split(r" [|:] ", floor)) for floor in floors)


@pytest.mark.parametrize("room", ["parts", "faces"])
def test_the_architecture_page_says_what_each_part_and_face_holds(room: str) -> None:
    there = {path.name for path in (ROOT / "healkit" / room).iterdir() if not path.name.startswith("__")}
    assert set(re.findall(rf"^\| `healkit/{room}/([\w.]+)` \|", ARCHITECTURE, re.MULTILINE)) == there


def test_the_contributors_page_names_every_test_that_writes_a_golden_file() -> None:
    variable = "HEALKIT_" + "REGENERATE"
    writers = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if variable in path.read_text() and path != Path(__file__)
    }
    assert writers <= set(re.findall(r"`(tests/[\w/]+\.py)`", CONTRIBUTING))


def test_the_page_about_rules_shows_a_rule_as_it_is() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", ADD_A_RULE, re.DOTALL)
    shown = msgspec.convert(tomllib.loads(block), catalogue.Subject)
    (failure,) = shown.failure
    assert failure in catalogue.patterns()
    ((name, row),) = shown.fix.items()
    assert fixes.ROWS[name] == row
    (code,) = re.findall(r"```python\n(.*?)```", ADD_A_RULE, re.DOTALL)
    assert code == inspect.getsource(fixes.FIXES[name])
    kinds = (catalogue.Subject, catalogue.FailurePattern, catalogue.ExplanationText, catalogue.FixRow)
    fields = {field for kind in (*kinds, catalogue.FixExample) for field in kind.__struct_encode_fields__}
    named = set(re.findall(r"`([a-z_]+)`", ADD_A_RULE)) - {"site", "match", "healkit", "int"}
    assert named <= fields


@pytest.mark.slow
def test_the_rule_of_the_page_fixes_a_tool_as_the_page_shows(tmp_path: Path) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", ADD_A_RULE, re.DOTALL)
    assert missing_from_shell(block, tmp_path, environment(tmp_path)) == []


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_is_given_to_some_file(marker: str) -> None:
    files = [path.relative_to(ROOT / "tests").as_posix() for path in files_with_tests()]
    for pattern in MARKERS[marker]:
        assert fnmatch.filter(files, pattern), f"{marker}: {pattern!r} matches no file"

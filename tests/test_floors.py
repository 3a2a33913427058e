"""Imports point down the floors.

Also those that import-linter cannot see.

import-linter reads import statements, in functions too. A module that is named by a string (`import_module("healkit…")`,
a table of lazy names, `sys.modules`) is not among them, and imports for the type checker are left out there.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "healkit"
_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
#: Top to bottom, each a list of siblings.
FLOORS = [
    re.split(r" [|:] ", floor) for floor in next(c["layers"] for c in _CONTRACTS if c["type"] == "layers")
]
_FLOOR_OF = {name: number for number, floor in enumerate(FLOORS) for name in floor}
_NAMED = re.compile(r"healkit\.(\w+)[\w.]*")
_REASON = re.compile(r"#\s*\S")


def part_of(path: Path) -> str:
    """Return the top-level module or package below healkit; empty for `healkit/__init__.py` and `__main__.py`."""
    relative = path.relative_to(PACKAGE)
    name = relative.parts[0].removesuffix(".py")
    return "" if name.startswith("__") else name


def points_down(source: str, target: str) -> bool:
    """Return whether that part may know the other: one on a floor below, or itself."""
    if not source or source == target:
        return True
    return _FLOOR_OF[source] < _FLOOR_OF[target] or FLOORS[-1] == FLOORS[_FLOOR_OF[source]]


def named_by_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and part of each module of healkit that a string names."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            match = _NAMED.fullmatch(node.value)
            if match is not None and match[1] in _FLOOR_OF:
                yield node.lineno, match[1]


def sources() -> Iterator[tuple[Path, str]]:
    """Each module of the package, with its text; the gallery's codes are data."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"broken", "healthy"} & set(path.parts):
            yield path, path.read_text(encoding="utf-8")


def upward_strings(part: str, text: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in named_by_strings(ast.parse(text)) if not points_down(part, name)]


def modules() -> dict[str, str]:
    """Each module's dotted name below healkit, with its text; `healkit` itself, the face over all, is left out."""
    found = {}
    for path, text in sources():
        names = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = text
    found.pop("")
    return found


def imports_of(nodes: Iterable[ast.AST], known: Collection[str]) -> Iterator[tuple[int, str]]:
    """Line and module of each import of healkit among the nodes, at the place that has the name."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "healkit":
            base = str(node.module).removeprefix("healkit").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                yield node.lineno, inner if inner in known else base
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "healkit":
                    yield node.lineno, alias.name.removeprefix("healkit").removeprefix(".")


def for_the_type_checker(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes under `if TYPE_CHECKING`."""
    guarded = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {inner for node in guarded for statement in node.body for inner in ast.walk(statement)}


def circles(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Module and imported module, where an import for the type checker closes a circle and says no reason."""
    real: dict[str, set[str]] = {}
    typed: list[tuple[str, int, str]] = []
    for name, text in texts.items():
        tree = ast.parse(text)
        guarded = for_the_type_checker(tree)
        rest = [node for node in ast.walk(tree) if node not in guarded]
        real[name] = {target for _, target in imports_of(rest, texts)}
        typed += [(name, line, target) for line, target in imports_of(guarded, texts)]
    found = []
    for name, line, target in typed:
        seen, wanted = set(), [target]
        while wanted:
            at = wanted.pop()
            if at not in seen:
                seen.add(at)
                wanted += real.get(at, ())
        if name in seen and not _REASON.search(texts[name].splitlines()[line - 1]):
            found.append((name, target))
    return found


def test_there_are_at_most_eight_floors_and_every_part_stands_on_one() -> None:
    parts = {part_of(path) for path, _ in sources()} - {""}
    assert len(FLOORS) <= 8
    assert parts == set(_FLOOR_OF)


def test_no_string_names_a_module_above_or_beside() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): upward_strings(part_of(path), text) for path, text in sources()
    }
    assert {name: places for name, places in found.items() if places} == {}


def test_an_import_for_the_type_checker_that_closes_a_circle_says_why() -> None:
    assert circles(modules()) == []


@pytest.mark.parametrize(
    ("part", "line", "wrong"),
    [
        ("runtime", 'import_module("healkit.faces.notebook.widgets")', True),
        ("cli", 'LAZY = {"panel": "healkit.faces.notebook.widgets"}', True),
        ("notebook", 'sys.modules.get("healkit.faces.notebook.widgets")', False),
        ("notebook", 'sys.modules.get("healkit.app")', False),
        ("runtime", '"""healkit.faces.notebook"""', False),
        ("store", 'open("healkit.db")', False),
    ],
)
def test_a_string_that_points_upward_is_found(part: str, line: str, wrong: bool) -> None:
    assert bool(upward_strings(part, line)) is wrong


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from healkit.app import Healkit", True),
        ("from healkit import app", True),
        ("import healkit.app", True),
        ("from healkit.app import Healkit  # a Protocol of its 12 members would only repeat it", False),
        ("from healkit.parts.runs.contract import Run", False),
    ],
)
def test_a_circle_through_the_type_checker_is_found(line: str, wrong: bool) -> None:
    runner = f"if TYPE_CHECKING:\n    {line}"
    texts = {
        "app": "def make():\n    from healkit.core.runtime.runner import Runner",
        "runtime.runner": runner,
        "contracts.runs": "",
    }
    assert bool(circles(texts)) is wrong

"""Imports point down the rooms, and nowhere in a circle.

Also those that import-linter cannot see: a module that is named by a string (`import_module("healkit…")`, a table of
lazy names, `sys.modules`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "healkit"
_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def layers_in(container: str) -> list[list[str]]:
    """Return the layers of the contract for what is directly in that package, top to bottom, each a list of siblings."""
    (contract,) = (c for c in _CONTRACTS if c["type"] == "layers" and c["containers"] == [container])
    return [re.split(r" [|:] ", layer) for layer in contract["layers"]]


ROOMS = layers_in("healkit")
_ROOM_OF = {name: number for number, room in enumerate(ROOMS) for name in room}
_NAMED = re.compile(r"healkit\.(\w+)[\w.]*")


def room_of(path: Path) -> str:
    """Return the top-level module or package below healkit; empty for `healkit/__init__.py` and `__main__.py`."""
    relative = path.relative_to(PACKAGE)
    name = relative.parts[0].removesuffix(".py")
    return "" if name.startswith("__") else name


def points_down(source: str, target: str) -> bool:
    """Return whether that room may know the other: one below, or itself."""
    return (
        not source
        or source == target
        or _ROOM_OF[source] < _ROOM_OF[target]
        or ROOMS[-1] == ROOMS[_ROOM_OF[source]]
    )


def named_by_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and room of each module of healkit that a string names."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            match = _NAMED.fullmatch(node.value)
            if match is not None and match[1] in _ROOM_OF:
                yield node.lineno, match[1]


def sources() -> Iterator[tuple[Path, str]]:
    """Each module of the package, with its text; the gallery's codes are data."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"broken", "healthy"} & set(path.parts):
            yield path, path.read_text(encoding="utf-8")


def upward_strings(room: str, text: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in named_by_strings(ast.parse(text)) if not points_down(room, name)]


def modules() -> dict[str, str]:
    """Each module's dotted name, with its text; `healkit` itself, which only names the others, is left out."""
    found = {}
    for path, text in sources():
        names = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = text
    del found["healkit"]
    return found


def imports_of(text: str, known: Collection[str]) -> set[str]:
    """Modules that a module imports: at its head, late, and for the type checker."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(known)


def circles(texts: Mapping[str, str]) -> list[list[str]]:
    """Return the sets of modules that import each other in a circle."""
    edges = {name: imports_of(text, texts) - {name} for name, text in texts.items()}
    reached: dict[str, set[str]] = {}
    for name in edges:
        seen: set[str] = set()
        wanted = [*edges[name]]
        while wanted:
            at = wanted.pop()
            if at not in seen:
                seen.add(at)
                wanted += edges[at]
        reached[name] = seen
    found = {tuple(sorted({name, *(at for at in reached[name] if name in reached[at])})) for name in edges}
    return [list(circle) for circle in sorted(found) if len(circle) > 1]


def test_every_module_at_the_top_is_in_a_room() -> None:
    assert {room_of(path) for path, _ in sources()} - {""} == set(_ROOM_OF)


@pytest.mark.requirement("ARCH-1")
def test_no_string_names_a_module_above_or_beside() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): upward_strings(room_of(path), text) for path, text in sources()
    }
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.requirement("ARCH-1")
def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(modules()) == []


@pytest.mark.parametrize(
    ("room", "line", "wrong"),
    [
        ("core", 'import_module("healkit.faces.notebook.widgets")', True),
        ("parts", 'LAZY = {"panel": "healkit.faces.notebook.widgets"}', True),
        ("core", 'OBSERVER = "healkit.parts.explain.facts.observers"', True),
        ("faces", 'sys.modules.get("healkit.faces.notebook.widgets")', False),
        ("faces", 'sys.modules.get("healkit.app")', False),
        ("core", '"""healkit.faces.notebook"""', False),
        ("core", 'open("healkit.db")', False),
    ],
)
def test_a_string_that_points_upward_is_found(room: str, line: str, wrong: bool) -> None:
    assert bool(upward_strings(room, line)) is wrong


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from healkit.app import Healkit", True),
        ("from healkit import app", True),
        ("import healkit.app", True),
        ("if TYPE_CHECKING:\n    from healkit.app import Healkit", True),
        ("def late():\n    from healkit.app import Healkit", True),
        ("from healkit.errors import HealkitError", False),
    ],
)
def test_a_circle_is_found(line: str, wrong: bool) -> None:
    texts = {
        "healkit.app": "from healkit.core.runner import Runner",
        "healkit.core.runner": line,
        "healkit.errors": "",
    }
    assert bool(circles(texts)) is wrong

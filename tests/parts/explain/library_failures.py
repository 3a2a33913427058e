"""Failures of `notebook_failures.toml`, run for real."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from healkit.core.contracts.failure import Failure, Frame
from healkit.core.pysource.tracebacks import read_traceback
from healkit.parts.explain.facts.observers import observe, suggestions

FILE = "<example@1>"


@dataclasses.dataclass(frozen=True)
class Example:
    """Row of the table: its code, the files that lie in its folder, and packages that must be absent."""

    name: str
    group: str
    title: str
    code: str
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    absent: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Ran:
    """Result of an example that was run: its failure, and the names that it defined."""

    failure: Failure
    names: dict[str, Any]


class _Absent:
    """Import hook that reports these packages as missing."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self._packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def examples() -> list[Example]:
    """Read the table."""
    rows = tomllib.loads((Path(__file__).parent / "notebook_failures.toml").read_text())["failure"]
    return [Example(**{**row, "absent": tuple(row.get("absent", ()))}) for row in rows]


def run(example: Example, folder: Path) -> Ran:
    """Run an example in a folder of its own, and take its failure as a notebook's card would."""
    for name, text in example.files.items():
        encoding = "latin-1" if text.startswith("latin-1:") else "utf-8"
        (folder / name).write_text(text.removeprefix("latin-1:"), encoding=encoding)
    with contextlib.chdir(folder), _without(example.absent):
        return run_code.__wrapped__(example.code)


@functools.cache
def run_code(code: str) -> Ran:
    """Run code that fails, once in a process, and return its failure with the facts."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an example may be bad style too
            exec(compile(code, FILE, "exec"), names)
    except BaseException as error:
        own, told = None, error.__traceback__
        while told is not None:
            own = told if told.tb_frame.f_code.co_filename == FILE else own
            told = told.tb_next
        near, known = suggestions(error, own)
        kind = type(error)
        ename = (
            kind.__qualname__
            if kind.__module__ in {"builtins", "__main__"}
            else f"{kind.__module__}.{kind.__qualname__}"
        )
        told = read_traceback(error)
        text = "".join(told.format())
        frames = [
            Frame(f.filename, f.lineno or 0, f.name, f.line or "", f.filename == FILE) for f in told.stack
        ]
        facts = observe(error, own)
        inner = {**names, **(own.tb_frame.f_locals if own is not None else {})}
        return Ran(
            Failure("TOOL_EXCEPTION", ename, str(error), text, frames, near=near, known=known, facts=facts),
            inner,
        )
    raise AssertionError(f"this does not fail: {code!r}")


@contextlib.contextmanager
def _without(packages: Sequence[str]) -> Iterator[None]:
    """Run without these packages, as on a machine where they are not installed."""
    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}
    hook = _Absent(packages)
    sys.meta_path.insert(0, hook)
    for name in hidden:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.meta_path.remove(hook)
        sys.modules.update(hidden)


#: Packages that take seconds to load.
_HEAVY = ("sklearn", "seaborn", "scipy", "networkx", "statsmodels", "matplotlib", "polars", ".plot")


def by_weight(rows: Iterable[Any], code_of: Callable[[Any], str] = lambda row: row.example) -> list[Any]:
    """Return rows with code as two parameters of a test; those that load a heavy package are slow."""
    light, heavy = [], []
    for row in rows:
        (heavy if any(package in code_of(row) for package in _HEAVY) else light).append(row)
    return [pytest.param(light, id="light"), pytest.param(heavy, id="heavy", marks=pytest.mark.slow)]


def is_regenerating() -> bool:
    """Return whether golden files are written instead of compared."""
    return bool(os.environ.get("HEALKIT_REGENERATE"))

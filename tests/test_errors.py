"""The errors: drawn as the tree they are, and imported from one place."""

from __future__ import annotations

import importlib
import pkgutil
import re

from healkit import errors

_ERRORS = {kind for kind in vars(errors).values() if isinstance(kind, type)}


def _defined() -> set[type]:
    """Every class that one of the package's modules defines."""
    modules = [
        importlib.import_module(f"healkit.errors.{found.name}")
        for found in pkgutil.iter_modules(errors.__path__)
    ]
    classes = (value for module in modules for value in vars(module).values() if isinstance(value, type))
    return {kind for kind in classes if issubclass(kind, errors.HealkitError)}


def test_every_error_is_imported_from_healkit_errors_and_says_so() -> None:
    assert _defined() == _ERRORS
    assert {kind.__module__ for kind in _ERRORS} == {"healkit.errors"}
    assert {kind.__name__ for kind in _ERRORS} <= set(errors.__all__)


def test_the_tree_shows_every_error_with_base_and_code() -> None:
    drawn, above = {}, ["HealkitError"]
    for line in (errors.__doc__ or "").splitlines():
        if (found := re.match(r"((?:│   |    )*)[├└]── (\w+)\s+(.*)", line)) is None:
            continue
        depth = len(found[1]) // 4 + 1
        above = [*above[:depth], found[2]]
        drawn[found[2]] = (above[depth - 1], found[3].split()[0])
    own_codes = {kind for kind in _ERRORS - {errors.HealkitError} if "code" in vars(kind)}
    assert drawn.keys() == {kind.__name__ for kind in _ERRORS} - {"HealkitError"}
    for kind in own_codes:
        assert drawn[kind.__name__] == (kind.__mro__[1].__name__, kind.code)

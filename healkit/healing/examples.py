"""A tool's declared examples, as checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from healkit.contracts.examples import checked_examples
from healkit.contracts.healing import Check
from healkit.errors import ExamplesInvalid
from healkit.store.entries import VaultEntry


def checks_of(entry: VaultEntry) -> list[Check]:
    """What the tool's owner has declared that it does, in the order of the examples.

    An example that an older healkit took and that says nothing is left out. One with neither result nor exception is
    a check that asks only for a return.
    """
    return [
        check for example in entry.examples if (check := _check(example, entry.type == "sql")) is not None
    ]


def _check(example: Any, sql: bool) -> Check | None:
    try:
        (found,) = checked_examples([example], sql=sql)
    except ExamplesInvalid:
        return None
    about: Mapping[str, Any] = {
        name: found[name] for name in ("arguments", "call", "raises") if name in found
    }
    known = "result" in found or "raises" in found
    return Check(origin="declared", known=known, expected=found.get("result"), **about)

"""A tool's declared examples as checks."""

from __future__ import annotations

from healkit.contracts.healing import Check
from healkit.store.entries import VaultEntry


def checks_of(entry: VaultEntry) -> list[Check]:
    """What its owner has declared, in the order in which it stands there."""
    return [
        Check(
            origin="declared",
            arguments=example.get("arguments", {}),
            call=example.get("call", ""),
            known=True,
            expected=example.get("result"),
            raises=example.get("raises", ""),
        )
        for example in entry.examples
    ]

"""The one question to the vault that an execution asks: which code is a tool's, for a persona."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

from healkit.store.candidates import candidate
from healkit.store.database import Database
from healkit.store.entries import DEFAULT_PERSONA, VaultEntry, entry_of
from healkit.store.statements import LOOKUP


class HasEntries(Protocol):
    """The vault, as far as it is needed here."""

    def get(self, name: str, persona: str) -> VaultEntry:
        """The entry; called by `lookup`. Raises `ToolNotFound` or `PersonaNotFound`."""


class Lookup:
    """Finds the entry that is to be run.

    vault: asked for where nothing is found, because the vault knows how to say what is wrong.
    """

    def __init__(self, database: Database, vault: Callable[[], HasEntries]) -> None:
        self._database = database
        self._vault = vault

    def lookup(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """The active revision for exactly that persona, else for `default`; its code is hashed again.

        Raises `ToolNotFound` or `PersonaNotFound` with near matches, and `VaultTampered`.
        """
        rows = self._database.fetch(LOOKUP, name=name, persona=persona)
        found = {row["target_persona"]: row for row in rows}
        chosen = found.get(persona) or found.get(DEFAULT_PERSONA)
        if chosen is None:
            return self._vault().get(name, persona)
        row: Any = SimpleNamespace(**chosen)
        return entry_of(row, row, row)

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """The entry with other code, as `patch` would make it, unsaved; raises what `patch` does for the code."""
        return candidate(entry, code, self._database.dialect_name)

"""Reads without SQLAlchemy, for executions and `healkit log`.

They look up the entry that is to be run, and the log's first page; importing SQLAlchemy takes longer than either. The
vault and `Log.query` answer everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

from healkit.contracts.vault import DEFAULT_PERSONA, VaultEntry
from healkit.errors import HealkitError, ToolRemoved
from healkit.store.database import Database
from healkit.store.entries import EntryRows, candidate, entry_of
from healkit.store.statements import LOOKUP


class HasEntries(Protocol):
    """Vault, as far as `EntryLookup` needs it."""

    def active(self, name: str, persona: str) -> VaultEntry:
        """Return the entry by a former name; called by `lookup`. Raises `ToolNotFound` or `PersonaNotFound`."""


class EntryLookup:
    """Finds the entry that is to be run.

    vault: asked where nothing is found, because the vault says what is wrong. entry_type: the class of entries.
    """

    def __init__(
        self, database: Database, vault: Callable[[], HasEntries], entry_type: type[VaultEntry] = VaultEntry
    ) -> None:
        self._database = database
        self._vault = vault
        self._entry_type = entry_type

    def lookup(self, name: str, persona: str = DEFAULT_PERSONA) -> VaultEntry:
        """Return the active revision for exactly that persona, else for `default`; its code is hashed again.

        Raises `ToolNotFound` or `PersonaNotFound` with near matches, `ToolRemoved`, and `VaultTampered`.
        """
        if not (isinstance(name, str) and isinstance(persona, str)):
            return self._vault().active(name, persona)
        rows = self._database.fetch(LOOKUP, name=name, persona=persona)
        found = {row["target_persona"]: row for row in rows}
        chosen = found.get(persona) or found.get(DEFAULT_PERSONA)
        if chosen is None:
            return self._vault().active(name, persona)
        row: Any = SimpleNamespace(**chosen)
        return entry_of(EntryRows(row, row, row), self._entry_type)

    def leaves_out(self, name: str, persona: str) -> bool:
        """Return whether that tool has its contents kept off the record; False where there is no such tool."""
        try:
            return not self.lookup(name, persona).logged
        except ToolRemoved as error:
            return not error.logged
        except HealkitError:
            return False

    def candidate(self, entry: VaultEntry, code: str) -> VaultEntry:
        """Return the entry with other code, as `patch` would make it, unsaved; raise as `patch` does for the code."""
        return candidate(entry, code, self._database.dialect_name)

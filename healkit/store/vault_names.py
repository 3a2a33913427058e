"""Names of the vault's tools: changed, removed and restored."""

from __future__ import annotations

from collections.abc import Callable

from healkit.contracts.vault import DEFAULT_PERSONA, NameChange, VaultEntry
from healkit.errors import check_text
from healkit.store import tool_names, vault_rows
from healkit.store.database import Database
from healkit.store.entries import EntryRows


class VaultNames:
    """Part of `Vault` that is about tools' names; entry_of makes the entry of its rows."""

    def __init__(self, database: Database, entry_of: Callable[[EntryRows], VaultEntry]) -> None:
        self._database = database
        self._entry = entry_of

    def rename(self, old: str, new: str, *, reason: str = "") -> VaultEntry:
        """Give a tool another name, for all its personas; return its entry.

        Its revisions, requests and log rows stay its own. The old name goes on meaning this tool, and no other tool
        can have it; callers that use it go on working, and their code is not changed (`callers` names them).

        Raises `ToolNotFound`, `ToolExists` for a name that is taken or another tool's former one, and `ToolShapeError`
        where healkit runs a function because the tool is called like it.
        """
        with self._database.write() as session:
            tool_names.rename(session, old, new, reason)
            tool = vault_rows.of_name(session, new)[0]
            return self._entry(vault_rows.rows_of(session, tool))

    def remove(self, name: str, persona: str | None = None, *, reason: str = "") -> list[VaultEntry]:
        """Remove a tool, for one persona or for all; return what was removed. Removing it again changes nothing.

        It is no longer listed or run (`ToolRemoved`); its code, revisions and log rows stay, and can be read. `restore`
        brings it back. Raises `ToolNotFound`.
        """
        with self._database.write() as session:
            removed = tool_names.remove(session, name, persona, reason)
            return [self._entry(vault_rows.rows_of(session, tool)) for tool in removed]

    def restore(self, name: str, persona: str | None = None, *, reason: str = "") -> VaultEntry:
        """Bring a removed tool back as it was, for one persona or for all; return its entry. Raises `ToolNotFound`."""
        with self._database.write() as session:
            tool = tool_names.restore(session, name, persona, reason)
            return self._entry(vault_rows.rows_of(session, tool))

    def name_changes(self, name: str) -> list[NameChange]:
        """Return when and why a tool was renamed, removed and brought back, oldest first."""
        with self._database.read() as session:
            return tool_names.changes(session, name)

    def former_names(self, persona: str = DEFAULT_PERSONA) -> dict[str, str]:
        """Map each former name of the tools that the persona can run to the name that the tool has now."""
        with self._database.read() as session:
            return tool_names.former_names(session, persona)

    def callers(self, name: str) -> list[str]:
        """Return the labels of the tools whose active code says `mcp.vault.<name>`; computed names are not seen."""
        check_text("name", name)
        with self._database.read() as session:
            return tool_names.callers(session, name)

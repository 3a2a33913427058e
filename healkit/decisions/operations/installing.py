"""Operations in a vault: added once, never over your tools."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from healkit.contracts.vault import DEFAULT_PERSONA
from healkit.decisions.operations.catalogue import GROUP, OPERATIONS, Operation
from healkit.decisions.operations.examples import examples_of
from healkit.errors import ToolExists, ToolRemoved
from healkit.store.entries import code_hash

if TYPE_CHECKING:
    from healkit.app import Healkit  # a Protocol of what it uses would only repeat it
    from healkit.contracts.vault import VaultEntry
    from healkit.store.vault import Vault

_ADD_REASON = "operations: as shipped with healkit"
_UPDATE_REASON = "operations: as shipped with this version of healkit"


@dataclasses.dataclass(frozen=True)
class InstallReport:
    """Result of an installation, by name: operations added, updated, kept as they are; `yours` are other tools.

    A tool in `yours` has the name of an operation, and was left alone: one that you wrote, patched or removed.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a terminal: `21 added, 0 updated, 0 kept`, and which tools of yours were left alone."""
        line = f"{len(self.added)} added, {len(self.updated)} updated, {len(self.kept)} kept"
        if self.yours:
            line += f"; left alone, since you have a tool of that name: {', '.join(self.yours)}"
        return line


def install(hk: Healkit) -> InstallReport:
    """Put the built-in operations into the vault, in the group `decide`; twice changes nothing.

    One that an earlier version of healkit put there, and that was not patched since, gets this version's code. Raises
    what the vault raises.
    """
    return install_in(hk.vault)


def install_in(vault: Vault) -> InstallReport:
    """Do as `install` does, in that vault."""
    done: dict[str, list[str]] = {"added": [], "updated": [], "kept": [], "yours": []}
    there = {entry.tool_name: entry for entry in vault.list(DEFAULT_PERSONA)}
    gone = {entry.tool_name for entry in vault.list(DEFAULT_PERSONA, removed=True)}
    gone |= set(vault.former_names(DEFAULT_PERSONA))
    for one in OPERATIONS:
        state = "yours" if one.name in gone else _install(vault, one, there.get(one.name))
        done[state].append(one.name)
    return InstallReport(**{state: tuple(names) for state, names in done.items()})


def _install(vault: Vault, one: Operation, there: VaultEntry | None) -> str:
    """Add the operation, or update what is there; return which of the four it was."""
    code = one.code
    if there is None:
        try:
            vault.add(
                one.name, code, input_schema=one.input_schema, examples=examples_of(one.name),
                group=GROUP, author="seed", reason=_ADD_REASON,
            )  # fmt: skip
        except (ToolExists, ToolRemoved):  # another process was faster
            return "yours"
        return "added"
    if there.code_hash == code_hash(code):
        return "kept"
    history = vault.history(one.name, DEFAULT_PERSONA)
    if there.group != GROUP or any(revision.author != "seed" for revision in history):
        return "yours"
    vault.patch(one.name, code, author="seed", reason=_UPDATE_REASON)
    return "updated"

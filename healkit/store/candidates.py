"""Code that no revision holds, as an entry that can be run."""

from __future__ import annotations

import dataclasses

from healkit.contracts.tools import EntryRef
from healkit.store.entries import VaultEntry, code_hash, describe

#: The revision that is none: a traceback calls such code `<fibonacci@0>`.
NO_REVISION = 0


def candidate(entry: VaultEntry, code: str, dialect: str) -> VaultEntry:
    """The entry with other code, as a patch would make it; its grants stay, and nothing is saved.

    Raises `CodeDoesNotParse`, `ToolShapeError` or `SqlNotAllowed`.
    """
    digest = code_hash(code)
    ref = EntryRef(entry.tool_name, entry.persona, NO_REVISION, digest)
    read_off = describe(code, entry.type, ref, dialect, draft=False)
    derived = entry.flags.get("derived", [])
    return dataclasses.replace(
        entry,
        revision=NO_REVISION,
        code=code,
        code_hash=digest,
        input_schema=read_off.input_schema if "input_schema" in derived else entry.input_schema,
        draft=False,
    )

"""Commands that rename, remove and restore a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from healkit import options
from healkit.cli.command import OK, DbOption, JsonOption, open_healkit, print_json, put, typed

if TYPE_CHECKING:
    from healkit.contracts.vault import VaultEntry

NameArgument = Annotated[str, typer.Argument(help="The tool's name.")]
ReasonOption = Annotated[str, typed(options.REASON)]
AnyPersonaOption = Annotated[str | None, typed(options.PERSONA_FILTER)]


def rename(
    old: Annotated[str, typer.Argument(help="The name it has.")],
    new: Annotated[str, typer.Argument(help="The name it gets.")],
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Give a tool another name, for all its personas; the old name still means it."""
    from healkit.runtime import vault_edits

    with open_healkit(db, create=False) as healkit:
        entry, said = vault_edits.rename(healkit.vault, old, new, reason)
    return _told([entry], said, as_json)


def remove(
    name: NameArgument,
    persona: AnyPersonaOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List and run a tool no more; its code, revisions and runs are kept."""
    from healkit.runtime import vault_edits

    with open_healkit(db, create=False) as healkit:
        removed, said = vault_edits.remove(healkit.vault, name, persona, reason, "healkit vault restore")
    return _told(removed, said, as_json)


def restore(
    name: NameArgument,
    persona: AnyPersonaOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Bring a removed tool back as it was."""
    from healkit.runtime import vault_edits

    with open_healkit(db, create=False) as healkit:
        entry, said = vault_edits.restore(healkit.vault, name, persona, reason)
    return _told([entry], said, as_json)


def entry_json(entry: VaultEntry, *, with_code: bool = True) -> dict[str, Any]:
    """Return an entry as `--json` prints it."""
    import msgspec

    fields = json.loads(msgspec.json.encode(entry))
    if not with_code:
        del fields["code"]
    return {"label": entry.ref.address, **fields}


def _told(entries: list[VaultEntry], said: str, as_json: bool) -> int:
    if as_json:
        print_json([entry_json(entry, with_code=False) for entry in entries])
    else:
        put(said)
    return OK

"""Commands of the vault, from add to blame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from healkit import options
from healkit.cli.command import (
    CODE,
    HELP_OPTIONS,
    OK,
    PERSONA,
    DbOption,
    JsonOption,
    PersonaOption,
    alone,
    command,
    open_healkit,
    print_json,
    put,
    read_code,
    takes,
    terminal_width,
    typed,
    wrong,
)
from healkit.crossing import values
from healkit.parsing import parse_arguments, parse_revision, read_grants, split_label

if TYPE_CHECKING:
    from healkit.contracts.vault import VaultEntry


app = typer.Typer(
    help="The tools and their revisions; without a command, the list.", context_settings=HELP_OPTIONS
)
NameArgument = Annotated[str, typer.Argument(help="The tool's name.")]
ReasonOption = Annotated[str, typed(options.REASON)]
AnyPersonaOption = Annotated[str | None, typed(options.PERSONA_FILTER)]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE|-", help="The file with its code, or - for stdin.")
]
ExampleOption = Annotated[list[str] | None, typed(options.EXAMPLE)]
DraftOption = Annotated[bool, typed(options.DRAFT)]


@takes("grants", options.GRANTS, read_grants)
def add(
    name: NameArgument,
    file: FileArgument,
    *,
    persona: PersonaOption = PERSONA,
    description: Annotated[str, typed(options.DESCRIPTION)] = "",
    schema: Annotated[str | None, typer.Option(metavar="JSON", help="The arguments' JSON Schema.")] = None,
    example: ExampleOption = None,
    group: Annotated[str, typer.Option(help="A group to list it under.")] = "",
    sql: Annotated[bool, typed(options.SQL.replace(help=f"{options.SQL.help}, as in a .sql file"))] = False,
    grants: dict[str, Any],
    draft: DraftOption = False,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Add a tool; refused when one of that name has other code (patch it then)."""
    from healkit.runtime import vault_edits

    code = read_code(file)
    with open_healkit(db, create=True) as healkit:
        before = vault_edits.exactly(healkit.vault, name, persona)
        entry = healkit.vault.add(
            name,
            code,
            persona=persona,
            type="sql" if sql or file.endswith(".sql") else "python",
            description=description,
            input_schema=None if schema is None else parse_arguments(schema, "--schema"),
            examples=[parse_arguments(text, "--example") for text in example or ()],
            group=group,
            draft=draft,
            reason=reason,
            grants=grants or None,
        )
    return _saved(entry, vault_edits.saved_line(entry, before), as_json)


@takes("grants", options.GRANTS, read_grants)
def patch(
    name: NameArgument,
    file: FileArgument,
    *,
    persona: PersonaOption = PERSONA,
    parent: Annotated[
        int | None, typer.Option(help="The revision it was made from.", show_default=False)
    ] = None,
    example: Annotated[
        list[str] | None, typed(options.EXAMPLE.replace(help="one more {arguments, result}"))
    ] = None,
    grants: dict[str, Any],
    draft: DraftOption = False,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Save a new revision of a tool; refused when its parent is no longer the active one."""
    from healkit.runtime import vault_edits

    code = read_code(file)
    more = [parse_arguments(text, "--example") for text in example or ()]
    with open_healkit(db, create=False) as healkit:
        entry, before = vault_edits.patch(
            healkit.vault,
            healkit.log,
            name,
            code,
            persona=persona,
            parent=parent,
            draft=draft,
            reason=reason,
            grants=grants,
            examples=more,
        )
    return _saved(entry, vault_edits.saved_line(entry, before), as_json)


@takes("grants", options.GRANTS, read_grants)
def grant(
    name: NameArgument,
    *,
    persona: PersonaOption = PERSONA,
    grants: dict[str, Any],
    clear: Annotated[bool, typed(options.CLEAR)] = False,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Change what a tool may do: the grants named, and no others. Without any, show them."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        if grants or clear:
            entry = healkit.vault.set_grants(name, persona, clear=clear, **grants)
        else:
            entry = healkit.vault.get(name, persona)
    if as_json:
        print_json(entry_json(entry, with_code=False))
    else:
        put(text_of(listings.grants(entry)))
    return OK


def switch(
    name: NameArgument,
    persona: PersonaOption = PERSONA,
    log: Annotated[
        bool | None,
        typer.Option("--log/--no-log", help="Keep what it is given and returns on record, or not."),
    ] = None,
    side_effects: Annotated[
        bool | None,
        typer.Option("--side-effects/--no-side-effects", help="Whether it changes anything outside."),
    ] = None,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Turn a tool's switches: whether its contents are on record, whether it has side effects."""
    given = {"log": log, "side_effects": side_effects}
    with open_healkit(db, create=False) as healkit:
        flags = {flag: value for flag, value in given.items() if value is not None}
        entry = healkit.vault.set_flags(name, persona, **flags)
    kept = "kept on record" if entry.logged else "kept off the record"
    effects = "has side effects" if entry.flags.get("side_effects") else "has no side effects"
    return _saved(entry, f"{entry.label}: its contents are {kept}; {effects}", as_json)


def show(
    name: Annotated[str, typer.Argument(help="NAME or NAME@REVISION.")],
    persona: PersonaOption = PERSONA,
    code: Annotated[bool, typer.Option("--code", help="The code alone, to pipe into a file.")] = False,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show one tool in full: code, arguments, grants."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    tool, in_label, revision = split_label(name)
    with open_healkit(db, create=False) as healkit:
        entry = healkit.vault.get(tool, in_label or persona, revision)
    if as_json:
        print_json(entry_json(entry), exact=CODE)
    elif code:
        put(entry.code.removesuffix("\n"), exact=True)
    else:
        put(text_of(listings.entry(entry)))
    return OK


def list_tools(
    persona: Annotated[str | None, typed(options.PERSONA_FILTER)] = None,
    removed: Annotated[bool, typer.Option("--removed", help="The removed tools instead.")] = False,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List all tools, each at its active revision."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        entries = healkit.vault.list(persona, removed=removed)
    if as_json:
        print_json([entry_json(entry, with_code=False) for entry in entries])
    else:
        put(text_of(listings.vault(entries), terminal_width()))
    return OK


def history(
    name: NameArgument, persona: PersonaOption = PERSONA, as_json: JsonOption = False, db: DbOption = None
) -> int:
    """List every revision, with how often it ran and failed."""
    import dataclasses

    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        revisions = healkit.vault.history(name, persona)
    if as_json:
        print_json([dataclasses.asdict(revision) for revision in revisions])
    else:
        put(text_of(listings.history(name, revisions), terminal_width()))
    return OK


def diff(
    name: NameArgument,
    a: Annotated[
        str | None, typer.Argument(help="From this revision; by default the parent.", show_default=False)
    ] = None,
    b: Annotated[
        str | None, typer.Argument(help="To this one; by default the active one.", show_default=False)
    ] = None,
    persona: PersonaOption = PERSONA,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show a unified diff of two revisions."""
    ends = [None if end is None else parse_revision(end) for end in (a, b)]
    with open_healkit(db, create=False) as healkit:
        text = healkit.vault.diff(name, ends[0], ends[1], persona=persona)
    if as_json:
        told = {"tool_name": name, "persona": persona, "from": ends[0], "to": ends[1], "diff": text}
        print_json(told, exact=CODE)
        return OK
    put(text.rstrip("\n") or f"{name}: no difference.", exact=True)
    return OK


def revert(
    name: NameArgument,
    to: Annotated[str, typer.Argument(help="The revision whose code to take back.")],
    persona: PersonaOption = PERSONA,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Save a new revision with an earlier one's code; the history stays complete."""
    number = parse_revision(to)
    with open_healkit(db, create=False) as healkit:
        entry = healkit.vault.revert(name, number, persona=persona, reason=reason)
    return _saved(entry, f"{entry.label} saved (the code of v{number} again)", as_json)


def undo(
    name: NameArgument, persona: PersonaOption = PERSONA, as_json: JsonOption = False, db: DbOption = None
) -> int:
    """Take back the active revision: a new one with the code that it was made from."""
    with open_healkit(db, create=False) as healkit:
        before = healkit.vault.get(name, persona)
        entry = healkit.undo(name, persona)
    return _saved(entry, f"{entry.label} saved ({before.label} is undone)", as_json)


def blame(
    name: NameArgument, persona: PersonaOption = PERSONA, as_json: JsonOption = False, db: DbOption = None
) -> int:
    """Show which revision brought the newest failure in, and which one resolved it."""
    import dataclasses

    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.vault.blame(name, persona=persona)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        put(text_of(listings.blame(name, found)))
    return OK


def examples(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    add: Annotated[
        list[str] | None,
        typer.Option("--add", metavar="JSON", help="One more: {arguments, result}, or raises; repeatable."),
    ] = None,
    docstring: Annotated[
        bool, typer.Option("--docstring", help="Read them off its docstring again.")
    ] = False,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take all of them away, before any is added.")
    ] = False,
    persona: PersonaOption = PERSONA,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """List, add or set the examples of a tool: what its calls have to do, and each patch too."""
    if docstring and clear:
        wrong("--docstring cannot be combined with --clear.", "Take one of them.")
    more = [parse_arguments(text, "--add") for text in add or ()]
    with open_healkit(db, create=False) as healkit:
        if docstring or clear:
            healkit.vault.set_examples(name, None if docstring else (), persona)
        for example in more:
            healkit.vault.add_example(name, example, persona)
        found = healkit.vault.get(name, persona).examples
    if as_json:
        print_json(found)
    else:
        lines = [json.dumps(values.with_texts(example), ensure_ascii=False, default=str) for example in found]
        put("\n".join(lines) or f"{name} has no examples.")
    return OK


def _saved(entry: VaultEntry, said: str, as_json: bool) -> int:
    if as_json:
        print_json(entry_json(entry), exact=CODE)
    else:
        put(said)
    return OK


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


alone(app, list_tools)
command(app, "add")(add)
command(app, "patch")(patch)
command(app, "grant")(grant)
command(app, "switch")(switch)
command(app, "show")(show)
command(app, "list")(list_tools)
command(app, "history")(history)
command(app, "diff")(diff)
command(app, "revert")(revert)
command(app, "undo")(undo)
command(app, "rename")(rename)
command(app, "remove")(remove)
command(app, "restore")(restore)
command(app, "blame")(blame)
command(app, "examples")(examples)

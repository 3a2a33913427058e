"""Commands of the vault, from add to blame."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.parsing import parse_arguments, parse_revision, read_code, split_label
from healkit.commands.table import CODE, Answer, Command, GrantOptions, Group, Json, wrong
from healkit.core.contracts.vault import CodeChange
from healkit.core.crossing import values
from healkit.faces.commands import cards, vault_edits

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.core.contracts.vault import VaultEntry


class Source(NamedTuple):
    """Code, and the file from which it was read."""

    file: str
    code: str


def _examples(flag: str) -> Callable[[list[str]], list[Json]]:
    return lambda texts: [parse_arguments(text, flag) for text in texts]


Name = Annotated[str, word("the tool's name")]
File = Annotated[
    Source,
    word("the file with its code, or - for stdin", "FILE|-", read=lambda file: Source(file, read_code(file))),
]
Persona = Annotated[str, options.PERSONA]
AnyPersona = Annotated[str | None, options.PERSONA_FILTER]
Reason = Annotated[str, options.REASON]
Examples = Annotated[list[Json] | None, options.EXAMPLE.replace(read=_examples("--example"))]
Draft = Annotated[bool, options.DRAFT]
SCHEMA = Option(
    "schema",
    "the arguments' JSON Schema",
    metavar="JSON",
    read=lambda text: parse_arguments(text, "--schema"),
)


def add(
    healkit: Healkit,
    name: Name,
    file: File,
    *,
    persona: Persona = "default",
    description: Annotated[str, options.DESCRIPTION] = "",
    schema: Annotated[Json | None, SCHEMA] = None,
    example: Examples = None,
    group: Annotated[str, Option("group", "a group to list it under")] = "",
    sql: Annotated[bool, options.SQL.replace(help=f"{options.SQL.help}, as in a .sql file")] = False,
    grants: GrantOptions,
    draft: Draft = False,
    reason: Reason = "",
) -> Answer:
    """Add a tool; refused if that name has other code (then use patch)."""
    before = vault_edits.exactly(healkit.vault, name, persona)
    entry = healkit.vault.add(
        name,
        file.code,
        persona=persona,
        type="sql" if sql or file.file.endswith(".sql") else "python",
        description=description,
        input_schema=schema,
        examples=example or (),
        group=group,
        draft=draft,
        reason=reason,
        grants=grants or None,
    )
    return _saved(entry, vault_edits.saved_line(entry, before))


def patch(
    healkit: Healkit,
    name: Name,
    file: File,
    *,
    persona: Persona = "default",
    parent: Annotated[int | None, Option("parent", "the revision it was made from")] = None,
    example: Annotated[
        list[Json] | None,
        options.EXAMPLE.replace(help="one more {arguments, result}", read=_examples("--example")),
    ] = None,
    grants: GrantOptions,
    draft: Draft = False,
    reason: Reason = "",
) -> Answer:
    """Save a new revision of a tool; refused if its parent is no longer the active one."""
    change = CodeChange(file.code, reason=reason, parent=parent, draft=draft, grants=grants)
    entry, before = vault_edits.patch(healkit.vault, healkit.log, name, persona, change, example or ())
    return _saved(entry, vault_edits.saved_line(entry, before))


def grant(
    healkit: Healkit,
    name: Name,
    *,
    persona: Persona = "default",
    grants: GrantOptions,
    clear: Annotated[bool, options.CLEAR] = False,
) -> Answer:
    """Change the named grants of a tool, and no others. Without any, show them."""
    if grants or clear:
        entry = healkit.vault.set_grants(name, persona, clear=clear, **grants)
    else:
        entry = healkit.vault.get(name, persona)
    return Answer(lambda: cards.grants(entry), lambda: entry_json(entry, with_code=False))


def switch(
    healkit: Healkit,
    name: Name,
    persona: Persona = "default",
    log: Annotated[
        bool | None, Option("log", "keep what it is given and returns on record, or not", both=True)
    ] = None,
    side_effects: Annotated[
        bool | None, Option("side_effects", "whether it changes anything outside", both=True)
    ] = None,
) -> Answer:
    """Set a tool's switches: whether its contents are logged, whether it has side effects."""
    flags = {"log": log, "side_effects": side_effects}
    entry = healkit.vault.set_flags(
        name, persona, **{flag: value for flag, value in flags.items() if value is not None}
    )
    record_state = "kept on record" if entry.logged else "kept off the record"
    effects = "has side effects" if entry.flags.get("side_effects") else "has no side effects"
    return _saved(entry, f"{entry.label}: its contents are {record_state}; {effects}")


def show(
    healkit: Healkit,
    name: Annotated[tuple[str, str | None, int | None], word("NAME or NAME@REVISION", read=split_label)],
    persona: Persona = "default",
    code: Annotated[bool, Option("code", "the code alone, to pipe into a file")] = False,
) -> Answer:
    """Show one tool in full: code, arguments, grants."""
    tool, in_label, revision = name
    entry = healkit.vault.get(tool, in_label or persona, revision)
    panel = ("PatchEditor", tool, entry.persona) if revision is None else ()
    return Answer(
        lambda: cards.entry(entry),
        lambda: entry_json(entry),
        text=entry.code.removesuffix("\n") if code else None,
        exact=CODE,
        panel=panel,
    )


def list_tools(
    healkit: Healkit,
    persona: AnyPersona = None,
    removed: Annotated[bool, Option("removed", "the removed tools instead")] = False,
) -> Answer:
    """List all tools, each at its active revision."""
    entries = healkit.vault.list(persona, removed=removed)
    return Answer(
        lambda: cards.vault(entries),
        lambda: [entry_json(entry, with_code=False) for entry in entries],
        table=True,
    )


def history(healkit: Healkit, name: Name, persona: Persona = "default") -> Answer:
    """List all revisions, with their numbers of runs and failures."""
    revisions = healkit.vault.history(name, persona)
    return Answer(
        lambda: cards.history_card(name, revisions), lambda: [*map(dataclasses.asdict, revisions)], table=True
    )


def diff(
    healkit: Healkit,
    name: Name,
    a: Annotated[int | None, word("from this revision; by default the parent", read=parse_revision)] = None,
    b: Annotated[int | None, word("to this one; by default the active one", read=parse_revision)] = None,
    persona: Persona = "default",
) -> Answer:
    """Show a unified diff of two revisions."""
    text = healkit.vault.diff(name, a, b, persona=persona)
    details = {"tool_name": name, "persona": persona, "from": a, "to": b, "diff": text}
    return Answer(
        lambda: cards.diff(name, text),
        lambda: details,
        text=text.rstrip("\n") or f"{name}: no difference.",
        exact=CODE,
    )


def revert(
    healkit: Healkit,
    name: Name,
    to: Annotated[int, word("the revision whose code to take back", read=parse_revision)],
    persona: Persona = "default",
    reason: Reason = "",
) -> Answer:
    """Save a new revision with an earlier one's code; the history stays complete."""
    entry = healkit.vault.revert(name, to, persona=persona, reason=reason)
    return _saved(entry, f"{entry.label} saved (the code of v{to} again)")


def undo(healkit: Healkit, name: Name, persona: Persona = "default") -> Answer:
    """Undo the active revision: save a new one with the code of its parent."""
    before = healkit.vault.get(name, persona)
    entry = healkit.undo(name, persona)
    return _saved(entry, f"{entry.label} saved ({before.label} is undone)")


def rename(
    healkit: Healkit,
    old: Annotated[str, word("the name it has")],
    new: Annotated[str, word("the name it gets")],
    reason: Reason = "",
) -> Answer:
    """Give a tool another name, for all its personas; the old name still works."""
    entry, sentence = vault_edits.rename_tool(healkit.vault, old, new, reason)
    return _told([entry], sentence)


def remove(
    healkit: Healkit, name: Name, persona: AnyPersona = None, reason: Reason = "", *, program: str = ""
) -> Answer:
    """Stop listing and running a tool; its code, revisions and runs are kept."""
    return _told(*vault_edits.remove_tool(healkit.vault, name, persona, reason, f"{program}vault restore"))


def restore(healkit: Healkit, name: Name, persona: AnyPersona = None, reason: Reason = "") -> Answer:
    """Bring a removed tool back as it was."""
    entry, sentence = vault_edits.restore_tool(healkit.vault, name, persona, reason)
    return _told([entry], sentence)


def blame(healkit: Healkit, name: Name, persona: Persona = "default") -> Answer:
    """Show which revision introduced the newest failure, and which one resolved it."""
    report = healkit.vault.blame(name, persona=persona)
    return Answer(lambda: cards.blame_card(name, report), lambda: dataclasses.asdict(report))


def examples(
    healkit: Healkit,
    name: Name,
    add: Annotated[
        list[Json] | None,
        Option(
            "add",
            "one more: {arguments, result}, or raises; repeatable",
            list[str],
            metavar="JSON",
            read=_examples("--add"),
        ),
    ] = None,
    docstring: Annotated[bool, Option("docstring", "read them off its docstring again")] = False,
    clear: Annotated[bool, Option("clear", "take all of them away, before any is added")] = False,
    persona: Persona = "default",
) -> Answer:
    """List, add or set the examples of a tool, which each patch must pass too."""
    if docstring and clear:
        wrong("--docstring cannot be combined with --clear.", "Take one of them.")
    if docstring or clear:
        healkit.vault.set_examples(name, None if docstring else (), persona)
    for example in add or ():
        healkit.vault.add_example(name, example, persona)
    stored_examples = healkit.vault.get(name, persona).examples
    lines = [
        json.dumps(values.with_texts(example), ensure_ascii=False, default=str) for example in stored_examples
    ]
    return Answer(said="\n".join(lines) or f"{name} has no examples.", data=lambda: stored_examples)


GROUP = Group(
    "The tools and their revisions; without a command, the list.",
    {
        "add": Command(add, creates=True),
        "patch": Command(patch),
        "grant": Command(grant),
        "switch": Command(switch),
        "show": Command(show),
        "list": Command(list_tools),
        "history": Command(history),
        "diff": Command(diff),
        "revert": Command(revert),
        "undo": Command(undo),
        "rename": Command(rename),
        "remove": Command(remove),
        "restore": Command(restore),
        "blame": Command(blame),
        "examples": Command(examples),
    },
)
COMMANDS = {"vault": GROUP}


def entry_json(entry: VaultEntry, *, with_code: bool = True) -> Json:
    """Return an entry in the form of `--json`."""
    fields = json.loads(msgspec.json.encode(entry))
    if not with_code:
        del fields["code"]
    return {"label": entry.ref.address, **fields}


def _saved(entry: VaultEntry, said: str) -> Answer:
    return Answer(said=said, data=lambda: entry_json(entry), exact=CODE)


def _told(entries: list[VaultEntry], said: str) -> Answer:
    return Answer(said=said, data=lambda: [entry_json(entry, with_code=False) for entry in entries])

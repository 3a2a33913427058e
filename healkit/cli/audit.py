"""Commands on the audit: verify, show, summary."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from healkit.cli.command import (
    HELP_OPTIONS,
    OK,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    alone,
    command,
    open_healkit,
    print_json,
    put,
    terminal_width,
    wrong,
)
from healkit.contracts.audit import AuditHead
from healkit.errors import AuditNotFound

app = typer.Typer(
    help="What was decided, in a chain that shows every later change; without a command, the sums.",
    context_settings=HELP_OPTIONS,
)
_HEAD_HELP = "What `healkit audit head` printed earlier: it must be a part of the chain."
_HELP = "The execution's id: a healing's is its run's id."


def verify(
    head: Annotated[str | None, typer.Option("--head", metavar="WORD", help=_HEAD_HELP)] = None,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Check entries, and the files that they name. Exit 0: all are as they were; 1: the first that is not is named."""
    from healkit.rendering import audit
    from healkit.rendering.to_text import text_of

    kept = None if head is None else _head_of(head)
    with open_healkit(db, create=False) as healkit:
        found = healkit.audit.verify(kept)
    if as_json:
        print_json({"ok": found.ok, **msgspec.to_builtins(found)})
    else:
        put(text_of(audit.verification(found)))
    return OK if found.ok else TOOL_FAILED


def head(as_json: JsonOption = False, db: DbOption = None) -> int:
    """Print the end of the chain, to be kept elsewhere: `healkit audit verify --head WORD` checks it later."""
    with open_healkit(db, create=False) as healkit:
        found = healkit.audit.head()
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        put(f"{found.chain}:{found.entries}:{found.hash}")
    return OK


def show(
    execution: Annotated[str, typer.Argument(metavar="EXECUTION", help=_HELP)],
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Show the entries of one execution."""
    from healkit.rendering import audit
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.audit.get(execution)
    if not found:
        raise _unknown(execution)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        put(text_of(audit.listing(found), terminal_width()))
    return OK


def summary(
    execution: Annotated[str | None, typer.Argument(metavar="EXECUTION", help=_HELP)] = None,
    as_json: JsonOption = False,
    db: DbOption = None,
) -> int:
    """Sum up one execution, or the whole audit: choices, corrections, failures, duration, tools."""
    from healkit.rendering import audit
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.audit.summary(execution)
    if execution is not None and not found.entries:
        raise _unknown(execution)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        put(text_of(audit.summary(found)))
    return OK


def _all(as_json: JsonOption = False, db: DbOption = None) -> int:
    return summary(None, as_json, db)


def _head_of(word: str) -> AuditHead:
    chain, _, rest = word.strip().partition(":")
    entries, _, digest = rest.partition(":")
    try:
        return msgspec.convert({"chain": chain, "entries": entries, "hash": digest}, AuditHead, strict=False)
    except msgspec.ValidationError:
        wrong(f"--head {word!r} is not a head.", "Give the word that healkit audit head printed.")


def _unknown(execution: str) -> AuditNotFound:
    return AuditNotFound(
        f"The audit has no entry of execution {execution!r}.",
        hint="The id of a healing is that of its run; healkit trace list shows them.",
    )


alone(app, _all)
command(app, "verify")(verify)
command(app, "head")(head)
command(app, "show")(show)
command(app, "summary")(summary)

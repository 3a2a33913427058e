"""Commands on the audit: verify, show, summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit.commands.options import Option, word
from healkit.commands.table import FAILED, OK, Answer, Command, Group, wrong
from healkit.errors import AuditNotFound
from healkit.parts.decide import render_audit as audit
from healkit.parts.runs.audit_records import AuditHead

if TYPE_CHECKING:
    from healkit.services import Services

_EXECUTION = word("the execution's id; for a healing, the id of its run", "EXECUTION")


def _head_of(text: str) -> AuditHead:
    chain, _, rest = text.strip().partition(":")
    entries, _, digest = rest.partition(":")
    try:
        return msgspec.convert({"chain": chain, "entries": entries, "hash": digest}, AuditHead, strict=False)
    except msgspec.ValidationError:
        wrong(
            f"--head {text!r} is not the head of an audit.", "Give the text that healkit audit head printed."
        )


_HEAD = Option(
    "head",
    "the head that `healkit audit head` printed earlier; it must be part of the chain",
    metavar="WORD",
    read=_head_of,
)


def verify_audit(services: Services, head: Annotated[AuditHead | None, _HEAD] = None) -> Answer:
    """Check entries, and the files that they name. Exit 0: nothing changed; 1: names the first changed entry."""
    verification = services.audit.verify(head)
    return Answer(
        lambda: audit.verification(verification),
        lambda: {"ok": verification.ok, **msgspec.to_builtins(verification)},
        exit_code=OK if verification.ok else FAILED,
    )


def print_head(services: Services) -> Answer:
    """Print the end of the chain, to keep elsewhere: `healkit audit verify --head WORD` checks it later."""
    chain_head = services.audit.head()
    return Answer(
        said=f"{chain_head.chain}:{chain_head.entries}:{chain_head.hash}",
        data=lambda: msgspec.to_builtins(chain_head),
    )


def show_entries(services: Services, execution: Annotated[str, _EXECUTION]) -> Answer:
    """Show the entries of one execution."""
    entries = services.audit.get(execution)
    if not entries:
        raise _unknown(execution)
    return Answer(lambda: audit.entry_list(entries), lambda: msgspec.to_builtins(entries), table=True)


def sum_up(services: Services, execution: Annotated[str | None, _EXECUTION] = None) -> Answer:
    """Sum up one execution, or the whole audit: choices, corrections, failures, duration, tools."""
    sums = services.audit.summary(execution)
    if execution is not None and not sums.entries:
        raise _unknown(execution)
    return Answer(lambda: audit.audit_sums(sums), lambda: msgspec.to_builtins(sums))


def _all(services: Services) -> Answer:
    return sum_up(services)


def _unknown(execution: str) -> AuditNotFound:
    return AuditNotFound(
        f"The audit has no entry of execution {execution!r}.",
        hint="The id of a healing is that of its run; healkit trace list shows them.",
    )


GROUP = Group(
    "Recorded decisions, in a chain that shows every later change; without a command, a summary.",
    {
        "verify": Command(verify_audit),
        "head": Command(print_head),
        "show": Command(show_entries),
        "summary": Command(sum_up),
    },
    alone=Command(_all),
)
COMMANDS = {"audit": GROUP}

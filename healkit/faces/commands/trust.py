"""Command that trusts a database, or shows its grants."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit.commands.options import Option, word
from healkit.commands.table import Answer, Command, wrong
from healkit.core.store import trust as trusted
from healkit.core.store.database import Database, resolve_url
from healkit.parts.doctor import cards as doctor_cards
from healkit.parts.doctor.doctor import trust_report

if TYPE_CHECKING:
    from healkit.commands.table import Json
    from healkit.parts.doctor.records import TrustReport


def trust(
    path: Annotated[str | None, word("the database: a path or a URL; by default the one in use")] = None,
    show: Annotated[bool, Option("show", "say what it would grant, and change nothing", bool)] = False,
    remove: Annotated[bool, Option("remove", "trust it no longer", bool)] = False,
) -> Answer:
    """Trust a database from elsewhere, permanently: its grants then apply. Your own are already trusted."""
    if show and remove:
        wrong("--show and --remove cannot be combined.", "Choose one of them.")
    database = Database(resolve_url(path), create=False, only_read=True)
    try:
        before = trust_report(database)
        if remove:
            trusted.distrust(database.place)
        elif not show and not before.why:
            database.trust()
        now = dataclasses.replace(before, why=database.why_trusted)
    finally:
        database.close()
    sentence = ""
    if remove:
        sentence = f"{now.place} is not trusted{' any more' if before.why else ''}"
    elif not show:
        sentence = f"{now.place} is {'already ' if before.why else ''}trusted"
    return Answer(lambda: doctor_cards.trust_card(now), lambda: _json(now), said=sentence)


def _json(report: TrustReport) -> Json:
    return {**dataclasses.asdict(report), "grants": msgspec.to_builtins(report.grants)}


COMMANDS = {"trust": Command(trust)}

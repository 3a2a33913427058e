"""Reports: status, doctor."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec

from healkit.commands.table import DB, FAILED, OK, Answer, Command

if TYPE_CHECKING:
    from healkit.app import Healkit


def status(healkit: Healkit) -> Answer:
    """Show where the database is, what is in it, which traces are waiting to be sent, and any problems."""
    from healkit.parts.doctor import cards as doctor_cards

    report = healkit.status()
    fields = {name: value for name, value in dataclasses.asdict(report).items() if name != "settings"}
    # The collector is listed even if it is not set.
    more = {
        "collector": "",
        **report.settings,
        "traces": report.traces and msgspec.structs.asdict(report.traces),
    }
    return Answer(lambda: doctor_cards.status_card(report), lambda: {**fields, **more})


def doctor(db: Annotated[str | None, DB] = None, *, open_healkit: Callable[..., Healkit]) -> Answer:
    """Test what isolation this machine can really enforce. Exit 1 if tools get no boundary here."""
    from healkit.config import Config
    from healkit.core.rendering.to_text import text_of
    from healkit.core.store.locations import choice
    from healkit.errors import DatabaseError
    from healkit.parts.doctor import cards as doctor_cards
    from healkit.parts.doctor.doctor import examine
    from healkit.plain_text import shown_url

    report = examine(Config.from_environment())
    try:
        url, chosen = choice(db)
        with open_healkit(url, create=False) as healkit:
            database_status = healkit.status()
        database = {
            "url": database_status.url,
            "chosen": chosen,
            "trusted": database_status.trust,
            "problem": database_status.problem,
        }
        summary = database_status.problem or f"({chosen}; trusted: {database_status.trust})"
    except DatabaseError as error:
        database = {"url": shown_url(db or ""), "problem": str(error)}
        summary = str(error)
    line = " ".join(f"Database: {database['url']} {summary}".split())
    return Answer(
        lambda: f"{text_of(doctor_cards.doctor(report))}\n{line}",
        lambda: {**dataclasses.asdict(report), "ok": report.ok, "database": database},
        exit_code=OK if report.ok else FAILED,
    )


COMMANDS = {"doctor": Command(doctor), "status": Command(status)}

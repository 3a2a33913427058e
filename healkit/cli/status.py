"""Commands on how healkit is: status, doctor."""

from __future__ import annotations

import dataclasses

import msgspec

from healkit.cli.command import (
    OK,
    TOOL_FAILED,
    DbOption,
    JsonOption,
    open_healkit,
    print_json,
    put,
)


def status(as_json: JsonOption = False, db: DbOption = None) -> int:
    """Show where the database is, what is in it, which traces wait to be sent, and what is wrong, if anything."""
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    with open_healkit(db, create=False) as healkit:
        found = healkit.status()
    if as_json:
        shown = {"collector": "", **found.settings}  # which is there also where it is not set
        fields = {name: value for name, value in dataclasses.asdict(found).items() if name != "settings"}
        print_json({**fields, **shown, "traces": msgspec.structs.asdict(found.traces)})
    else:
        put(text_of(listings.status(found)))
    return OK


def doctor(as_json: JsonOption = False, db: DbOption = None) -> int:
    """Try for real what isolation this machine can enforce. Exit 1 if tools get no boundary here."""
    from healkit.config import Config
    from healkit.doctor import examine
    from healkit.errors import DatabaseError
    from healkit.plain_text import shown_url
    from healkit.rendering import listings
    from healkit.rendering.to_text import text_of

    report = examine(Config.from_environment())
    try:
        with open_healkit(db, create=False) as healkit:
            status = healkit.status()
        database = {"url": status.url, "problem": status.problem}
    except DatabaseError as error:
        database = {"url": shown_url(db or ""), "problem": str(error)}
    if as_json:
        print_json({**dataclasses.asdict(report), "ok": report.ok, "database": database})
    else:
        put(text_of(listings.doctor(report)))
        put(" ".join(f"Database: {database['url']} {database['problem'] or '(in order)'}".split()))
    return OK if report.ok else TOOL_FAILED

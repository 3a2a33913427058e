"""Reports: status, doctor; seed and summarize."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from healkit.faces.commands import options
from healkit.faces.commands.options import Option, word
from healkit.faces.commands.table import DB, FAILED, OK, Answer, Command, open_healkit, wrong

if TYPE_CHECKING:
    from healkit.app import Healkit

Kind = Literal["text", "csv", "tsv", "parquet"]
KINDS: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
#: Bytes of a text that are read: what is summarised of it, with four bytes a character.
_TEXT_MAX_BYTES = 64_000_004


def status(healkit: Healkit) -> Answer:
    """Show where the database is, what is in it, which traces wait to be sent, and what is wrong, if anything."""
    from healkit.parts.doctor import cards as doctor_cards

    report = healkit.status()
    fields = {name: value for name, value in dataclasses.asdict(report).items() if name != "settings"}
    # The collector is there also where it is not set.
    more = {
        "collector": "",
        **report.settings,
        "traces": report.traces and msgspec.structs.asdict(report.traces),
    }
    return Answer(lambda: doctor_cards.status(report), lambda: {**fields, **more})


def doctor(db: Annotated[str | None, DB] = None) -> Answer:
    """Try for real what isolation this machine can enforce. Exit 1 if tools get no boundary here."""
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


def seed(
    healkit: Healkit,
    reset: Annotated[
        bool, Option("reset", "give every seeded tool its shipped code again", both=True)
    ] = False,
    debug_tools_only: Annotated[
        bool, Option("debug_tools_only", "only get_last_error and its siblings", both=True)
    ] = False,
) -> Answer:
    """Add the debug tools, samples and broken lessons to the vault. A second time changes nothing."""
    report = healkit.seed(reset=reset, debug_tools_only=debug_tools_only)
    url = healkit.database.shown_url
    return Answer(said=f"{url}: {report}", data=lambda: {"db": url, **dataclasses.asdict(report)})


def summarize(
    file: Annotated[str, word("text, CSV, TSV or Parquet; - for stdin")],
    kind: Annotated[
        Kind | None,
        Option("kind", "what the file is", flag="--as", default_help="by its ending, else text"),
    ] = None,
    top: Annotated[int, options.TOP] = options.TOP.default,
) -> Answer:
    """Summarise a text or a table without a model: counts, n-grams, entities; types, nulls, ranges."""
    from healkit.config import Config
    from healkit.parts.decide import render_summaries as summaries
    from healkit.parts.decide.summaries import summarize as summary_of
    from healkit.parts.sanitizer.sanitizer import Sanitizer

    value = read_source(file, kind or KINDS.get(Path(file).suffix.lower(), "text"))
    summary = summary_of(value, Sanitizer.from_config(Config.from_environment()), top=top)
    return Answer(
        lambda: summaries.summary_card(summary),
        lambda: msgspec.json.decode(msgspec.json.encode(summary)),
        table=True,
    )


COMMANDS = {
    "seed": Command(seed, creates=True),
    "doctor": Command(doctor),
    "status": Command(status),
    "summarize": Command(summarize),
}


def read_source(file: str, kind: Kind, hint: str = "--as says what it is.") -> Any:
    """Return the text, or the table as a frame or an Arrow table; raise `UsageInvalid` where it cannot be read."""
    try:
        if kind == "text":
            with contextlib.nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
                return stream.read(_TEXT_MAX_BYTES).decode(errors="replace")
        source: io.BytesIO | str = io.BytesIO(sys.stdin.buffer.read()) if file == "-" else file
        if kind == "parquet":
            import pyarrow.parquet as pq

            return pq.read_table(source)
        import pandas as pd

        return pd.read_csv(
            source, sep="\t" if kind == "tsv" else ",", encoding_errors="replace", low_memory=False
        )
    except OSError as error:
        wrong(f"Cannot read {file!r}: {error.strerror or error}.", "Name a file, or - for stdin.")
    except (ValueError, ImportError) as error:  # those of pandas' and Arrow's readers are such
        wrong(f"{file!r} cannot be read as {kind}: {error}", hint)

"""Commands on data: decide, summarize."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.parsing import chooser_of, read_aliases, read_code, read_steps, split_commas
from healkit.commands.table import DB, FAILED, INTERRUPTED, OK, Answer, Command, Terminal, wrong

Kind = Literal["text", "csv", "tsv", "parquet"]
KINDS: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
#: Bytes of a text that are read: what is summarised of it, with four bytes a character.
_TEXT_MAX_BYTES = 64_000_004
#: Endings of files of text.
_TEXTS = (".txt", ".md")
_DATA_HELP = "a file (.csv, .tsv, .parquet, .txt, .md) or a data view, and its name in the decision"
_NO_DATA = ("A decision needs data.", "Write healkit decide QUESTION --data NAME=FILE --chooser person")


def decide(
    question: Annotated[str | None, word("the question, in quotes")] = None,
    named: Annotated[list[str] | None, word(f"{_DATA_HELP}; or --data", "[NAME=SOURCE]…")] = None,
    data: Annotated[list[str] | None, Option("data", _DATA_HELP, metavar="NAME=SOURCE", many=True)] = None,
    tools: Annotated[str | None, options.TOOLS] = None,
    plan: Annotated[str | None, options.PLAN] = None,
    chooser: Annotated[str | None, options.CHOOSER] = None,
    resume: Annotated[str | None, options.RESUME] = None,
    share: Annotated[list[str] | None, options.SHARE] = None,
    alias: Annotated[list[str] | None, options.ALIAS] = None,
    heal: Annotated[bool, options.HEAL_TOOLS] = False,
    analysis: Annotated[bool, options.ANALYSIS] = False,
    persona: Annotated[str, options.PERSONA] = "default",
    timeout: Annotated[float | None, options.TIMEOUT] = None,
    db: Annotated[str | None, DB] = None,
    *,
    as_json: bool,
    open_healkit: Callable[..., Any],
    terminal: Terminal,
) -> Answer:
    """Answer a question about data by tools, chosen by metadata alone. Exit 0: it ended in a view; 1: it did not."""
    from healkit.parts.decide.choosers import Person, ask_person

    if resume is None and question is None:
        wrong("A decision needs a question.", 'Write it in quotes: healkit decide "Which region sells most?"')
    steps = None if plan is None else read_steps(read_code(plan), plan)
    has_own = resume is not None and steps is None and chooser is None
    chosen = None if has_own else chooser_of(steps, chooser)
    person = chosen == "person"
    asks = not person and not as_json and sys.stdin.isatty()
    with open_healkit(db, create=False, many_runs=True) as healkit:
        decision = healkit.decide(
            question,
            _data([*(named or ()), *(data or ())], resume),
            resume=resume,
            chooser=Person(terminal.read, terminal.say) if person else chosen,
            tools=None if tools is None else split_commas(tools),
            persona=persona,
            share=share or (),
            ask=(lambda asked: ask_person(asked, terminal.read, terminal.say)) if asks else None,
            aliases=read_aliases(alias),
            heal=heal,
            analyst="model" if analysis else None,
            timeout=timeout,
        )
    name = decision.raw_data_view_name
    view = "" if name is None else f"healkit views show {name} · "
    code = OK if decision.ok else FAILED
    return Answer(
        lambda: str(decision),
        decision.to_json,
        hints=[f"Next: {view}healkit audit show {decision.run.run_id}"],
        exit_code=INTERRUPTED if decision.interrupted else code,
    )


def _data(given: list[str], resume: str | None) -> dict[str, Any] | None:
    if not given and resume is None:
        wrong(*_NO_DATA)
    return dict(map(_source, given)) if given else None


def _source(text: str) -> tuple[str, Any]:
    """Read `NAME=SOURCE`: a table or a text for a file's name, otherwise the name of a data view."""
    name, sign, source = text.partition("=")
    ending = Path(source or text).suffix.lower()
    if not sign and (stem := Path(text).stem).isidentifier() and ending in (*KINDS, *_TEXTS):
        name, source = stem, text
    if not (name and source):
        wrong(f"{text!r} has no name and source.", "Write NAME=SOURCE, such as sales=sales.csv.")
    if ending in _TEXTS:
        return name, [read_source(source, "text")]  # in a list: a text of one word would name a view
    kind = KINDS.get(ending)
    if kind is None:
        return name, source
    table = read_source(source, kind, "Is it a table in that format?")
    # Most tools on tables take frames of pandas.
    return name, table.to_pandas() if kind == "parquet" else table


def summarize(
    file: Annotated[str, word("text, CSV, TSV or Parquet; - for stdin")],
    kind: Annotated[
        Kind | None,
        Option("kind", "what the file is", flag="--as", default_help="by its extension, else text"),
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


def read_source(file: str, kind: Kind, hint: str = "Use --as to say what it is.") -> Any:
    """Return the text, or the table as a frame or an Arrow table; raise `UsageInvalid` if it is unreadable."""
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


COMMANDS = {"decide": Command(decide), "summarize": Command(summarize)}

"""Command that answers a question about data: decide."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from healkit.faces.cli.command import INTERRUPTED, say
from healkit.faces.commands import options
from healkit.faces.commands.options import Option, word
from healkit.faces.commands.parsing import chooser_of, read_aliases, read_steps, split_commas
from healkit.faces.commands.reports import KINDS, read_source
from healkit.faces.commands.table import DB, FAILED, OK, Answer, Command, open_healkit, wrong
from healkit.faces.commands.vault import read_code

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
            chooser=Person(_read, say) if person else chosen,
            tools=None if tools is None else split_commas(tools),
            persona=persona,
            share=share or (),
            ask=(lambda asked: ask_person(asked, _read, say)) if asks else None,
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


COMMANDS = {"decide": Command(decide)}


def _data(given: list[str], resume: str | None) -> dict[str, Any] | None:
    if not given and resume is None:
        wrong(*_NO_DATA)
    return dict(map(_source, given)) if given else None


def _source(text: str) -> tuple[str, Any]:
    """Read `NAME=SOURCE`: a table or a text for a file's name, else the name of a data view."""
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
    table = read_source(source, kind, "Is it a table of that kind?")
    # Most tools on tables take frames of pandas.
    return name, table.to_pandas() if kind == "parquet" else table


def _read(prompt: str) -> str:
    """Read a line of stdin; the prompt goes to stderr, so that stdout holds the answer alone."""
    typer.echo(prompt, nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line

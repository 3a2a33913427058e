"""Command of a tool's examples: list, add, set again."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from healkit.cli.command import (
    OK,
    PERSONA,
    DbOption,
    JsonOption,
    PersonaOption,
    open_healkit,
    print_json,
    wrong,
)
from healkit.parsing import parse_arguments


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
        lines = [json.dumps(example, ensure_ascii=False, default=str) for example in found]
        typer.echo("\n".join(lines) or f"{name} has no examples.")
    return OK

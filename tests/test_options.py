"""Options: one table, which both faces read.

Both read every row of it, and explain it in the same words.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest
import typer

from healkit.faces.cli import command_line
from healkit.faces.commands import options
from healkit.faces.commands.options import Option
from healkit.faces.notebook.magic_parsers import PARSERS

ROWS = {
    name: row
    for name, value in vars(options).items()
    for row in (value if isinstance(value, tuple) else (value,))
    if isinstance(row, Option)
    for name in [f"{name}.{row.name}"]
}


def commands(group: typer.core.TyperGroup) -> Iterator[typer.core.TyperCommand]:
    """Every command below that group."""
    for command in group.commands.values():
        if isinstance(command, typer.core.TyperGroup):
            yield command
            yield from commands(command)
        else:
            yield command


def in_the_command_line() -> set[tuple[str, str]]:
    """Flag and help of every option of every command."""
    top = typer.main.get_command(command_line())
    return {
        (p.opts[0], p.help or "") for command in commands(top) for p in command.params if hasattr(p, "help")
    }


def in_the_magics() -> set[tuple[str, str]]:
    """Flag and help of every option of every magic."""
    actions: list[argparse.Action] = [action for make in PARSERS.values() for action in make()._actions]
    return {(action.option_strings[0], action.help or "") for action in actions if action.option_strings}


COMMANDS, MAGICS = in_the_command_line(), in_the_magics()


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_an_option_of_a_command_and_of_a_magic(row: Option) -> None:
    sentence = f"{row.text[0].upper()}{row.text[1:]}"
    assert [told for flag, told in COMMANDS if flag == row.long_flag and told.startswith(sentence)]
    assert [told for flag, told in MAGICS if flag == row.long_flag and row.text in told]


def test_an_option_that_may_be_given_again_says_so() -> None:
    assert Option("read", "a path", many=True).text == "a path; may be repeated"

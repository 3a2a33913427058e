"""Options: one table, which both faces read.

Both read every row of it, and explain it in the same words.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

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


def test_a_row_is_an_option_of_a_command_and_of_a_magic() -> None:
    in_commands, in_magics = in_the_command_line(), in_the_magics()
    for name, row in ROWS.items():
        sentence = f"{row.text[0].upper()}{row.text[1:]}"
        of_commands = [text for flag, text in in_commands if flag == row.long_flag]
        of_magics = [text for flag, text in in_magics if flag == row.long_flag]
        assert any(text.startswith(sentence) for text in of_commands), name
        assert any(row.text in text for text in of_magics), name


def test_an_option_that_may_be_given_again_says_so() -> None:
    assert Option("read", "a path", many=True).text == "a path; may be repeated"

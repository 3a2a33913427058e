"""Command line: the commands, by name.

Commands that a notebook has too are in `healkit.faces.commands`; commands that need a terminal are here. `command`
turns both into typer's commands. Results go to stdout and all messages to stderr, so that each command works in a pipe.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from healkit.commands.table import INTERRUPTED, OK, Command, Group
from healkit.errors import HealkitError, UsageInvalid
from healkit.faces.cli.command import (
    HELP_OPTIONS,
    error_json,
    group_of,
    refuse,
    register,
    say,
)
from healkit.faces.commands import rows
from healkit.package import VERSION

#: Exception of typer for a line that it cannot parse, from its own copy of click; it exports only a subclass.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
#: Group → whether that word after it names a row to show: `healkit log 3`, `healkit trace last`.
_SHOWN_ALONE: dict[str, Callable[[str], bool]] = {"log": str.isdecimal, "trace": "last".__eq__}
#: Placeholder in a usage line → the command that lists its values. In a group, it is the group's own list.
_LISTS = {"TOOL": "healkit vault list"}
#: Required options of a command.
_BESIDE = {"healkit decide": " --data NAME=FILE --chooser person"}
_GROUP_LISTS = {
    "vault": "healkit vault",
    "views": "healkit views",
    "requests": "healkit requests",
    "trace": "healkit trace",
    "audit": "healkit trace",
}


def command_line(wanted: str = "") -> typer.Typer:
    """Return the command line: with the wanted command only, else with all of them.

    typer builds each command that it gets, which takes longer than most commands do.
    """
    app = typer.Typer(
        help="Run tools in restricted worker kernels, keep every failure, fix it.",
        no_args_is_help=True,
        context_settings=HELP_OPTIONS,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name in [wanted] if wanted and rows.find(wanted) else rows.names():
        row = rows.find(name)
        if isinstance(row, Group):
            app.add_typer(group_of(row), name=name)
        elif row is not None:
            register(app, name, row)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"healkit {VERSION}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; called by the console script `healkit` and by `python -m healkit`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without a tick character must not fail
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # before a command has begun, or after it
        say("Stopped.")
        sys.exit(INTERRUPTED)


def _run(words: list[str]) -> int:
    """Run the command line; return the exit code.

    For a line that cannot be parsed, it prints one line on stderr, and with `--json` the command's JSON for a wrong
    call on stdout.
    """
    wanted = words[0] if words else ""
    if words[1:2] and wanted in _SHOWN_ALONE and _SHOWN_ALONE[wanted](words[1]):
        words = [wanted, "show", *words[1:]]
    try:
        return command_line(wanted)(words, prog_name="healkit", standalone_mode=False) or 0
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # which typer does not export
            typer.echo(error.format_message(), nl=False)  # empty if rich has already printed the help
            return OK
        on_error: Callable[[HealkitError], object] | None = None
        if "--json" in words:
            on_error = error_json
            if isinstance(command := rows.find(wanted), Command) and command.refusal is not None:
                on_error = command.refusal
        return refuse(_told(error), on_error)


def _told(error: Any) -> UsageInvalid:
    """Return typer's error as one that says what to type."""
    context = error.ctx
    path = context.command_path if context is not None else "healkit"
    if (missing := getattr(error, "param", None)) is not None and type(error).__name__ == "MissingParameter":
        return _missing(context, missing, path)
    message = error.format_message().partition(", unable to")[0].rstrip(".")
    hint = f"{path} --help shows what it takes."
    if path == "healkit run" and (option := getattr(error, "option_name", "")).startswith("--"):
        hint = f"An argument of the tool is written without dashes: healkit run TOOL {option[2:]}=VALUE"
    if message.startswith("No such command"):
        word = context.args[0] if context.args else message.split("'")[1]
        if "show" in getattr(context.command, "commands", ()) and "?" not in message:
            hint = f"Write {path} show {shlex.quote(word)}, or {path} --help for what there is."
        else:
            hint = f"{path} --help shows what there is."
    return UsageInvalid(message if message.endswith("?") else f"{message}.", hint=hint)


def _missing(
    context: typer.Context, missing: typer.core.TyperArgument | typer.core.TyperOption, path: str
) -> UsageInvalid:
    """Return the error for a missing word, with the line as typed and the missing words in capitals."""
    words = []
    for parameter in context.command.params:
        if parameter.param_type_name == "argument" and parameter.required:
            value = context.params.get(parameter.name)
            words.append(_placeholder(parameter) if value is None else shlex.quote(str(value)))
    group = path.split()[1] if len(path.split()) > 1 else ""
    listed = _GROUP_LISTS.get(group) or _LISTS.get(_placeholder(missing), "")
    about = (missing.help or "").rstrip(".")
    about = about if about[1:2].isupper() else f"{about[:1].lower()}{about[1:]}"
    return UsageInvalid(
        f"{_placeholder(missing)} is missing{f' ({about})' if about else ''}.",
        hint=f"Write {path} {' '.join(words)}{_BESIDE.get(path, '')}"
        + (f"; {listed} lists what there is." if listed else f"; {path} --help shows what it takes."),
    )


def _placeholder(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).partition("|")[0].upper()

"""Command line: the commands, by name.

Each command is in the module of its name; demo and seed are in `run`, errors in `log`, doctor in `status`. `command`
has what they share. Results go to stdout and everything about them to stderr, so that each command works in a pipe.
"""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

from healkit import __version__
from healkit.cli.command import HELP_OPTIONS, INTERRUPTED, WRONG_CALL, command, error_json, print_json, say
from healkit.errors import UsageInvalid

#: What typer raises for a line that it cannot read, of the copy of click that it carries; it exports a subclass only.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
#: Command → its module, in the order of `healkit --help`. A module's function of that name is the command, with what
#: its REGISTRATION says; for a group of commands it is the module's `app`.
_COMMANDS = {
    "run": "run",
    "demo": "run",
    "lab": "lab",
    "seed": "run",
    "heal": "heal",
    "decide": "decide",
    "errors": "log",
    "doctor": "status",
    "collect": "collect",
    "status": "status",
    "summarize": "summarize",
}
_GROUPS = ("log", "vault", "requests", "views", "audit", "kernelspec", "trace")


def command_line(wanted: str = "") -> typer.Typer:
    """Return the command line: with the wanted command alone, else with all of them.

    typer builds each command that it is given, which takes longer than most commands do.
    """
    app = typer.Typer(
        help="Run tools in restricted worker kernels, keep every failure, fix it.",
        no_args_is_help=True,
        context_settings=HELP_OPTIONS,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    known = (*_COMMANDS, *_GROUPS)
    for name in [wanted] if wanted in known else known:
        module = importlib.import_module(f"healkit.cli.{_COMMANDS.get(name, name)}")
        if name in _GROUPS:
            app.add_typer(module.app, name=name)
        else:
            command(app, name, **getattr(module, "REGISTRATION", {}).get(name, {}))(getattr(module, name))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"healkit {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the console script `healkit` and `python -m healkit` call it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a tick must not break a terminal that has none
    try:
        sys.exit(_run(sys.argv[1] if len(sys.argv) > 1 else ""))
    except KeyboardInterrupt:  # before a command has begun, or after it
        say("Stopped.")
        sys.exit(INTERRUPTED)


def _run(wanted: str) -> int:
    """Run the command line; return the exit code.

    A line that cannot be read is one line on stderr, and with `--json` the command's JSON for a wrong call on stdout.
    """
    try:
        return command_line(wanted)(prog_name="healkit", standalone_mode=False) or 0
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # which typer does not export
            typer.echo(error.format_message(), nl=False)  # empty where rich has printed the help already
            return WRONG_CALL
        context = error.ctx
        path = context.command_path if context is not None else "healkit"
        told = error.format_message().partition(", unable to")[0].rstrip(".")
        refused = UsageInvalid(
            told if told.endswith("?") else f"{told}.", hint=f"{path} --help shows what it takes."
        )
        if "--json" in sys.argv[1:]:
            module = importlib.import_module(f"healkit.cli.{_COMMANDS.get(wanted, 'command')}")
            registration = getattr(module, "REGISTRATION", {}).get(wanted, {})
            print_json(registration.get("on_error", error_json)(refused))
        say(f"{refused.code}: {refused}")
        return WRONG_CALL

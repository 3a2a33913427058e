"""Command line: the commands, by name.

Each command is in the module of its name; demo and seed are in `run`, errors in `log`, doctor in `status`. `command`
has what they share. Results go to stdout and everything about them to stderr, so that each command works in a pipe.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from healkit import __version__
from healkit.cli import collect, heal, kernelspec, lab, log, requests, run, status, trace, vault
from healkit.cli.command import HELP_OPTIONS, command

app = typer.Typer(
    help="Run tools in restricted worker kernels, keep every failure, mend it.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=HELP_OPTIONS,
    pretty_exceptions_enable=False,
)
command(app, "run", on_error=run.refusal)(run.run)
command(app, "demo")(run.demo)
command(app, "lab", context=lab.PASS_ON)(lab.lab)
command(app, "seed")(run.seed)
command(app, "heal")(heal.heal)
command(app, "errors")(log.errors)
command(app, "doctor")(status.doctor)
command(app, "collect")(collect.collect)
command(app, "status")(status.status)
app.add_typer(log.app, name="log")
app.add_typer(vault.app, name="vault")
app.add_typer(requests.app, name="requests")
app.add_typer(kernelspec.app, name="kernelspec")
app.add_typer(trace.app, name="trace")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"healkit {__version__}")
        raise typer.Exit


@app.callback()
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
    app(prog_name="healkit")

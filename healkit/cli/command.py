"""Shared parts of all commands: options, exit codes, JSON."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

from healkit import options
from healkit.config import Config
from healkit.crossing.values import readable
from healkit.errors import HealkitError, UsageInvalid
from healkit.options import Option
from healkit.plain_text import seen_json, visible

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.contracts.failure import Failure
    from healkit.runtime.execution import Execution

OK, TOOL_FAILED, WRONG_CALL, INTERRUPTED = 0, 1, 2, 130
_FIRST_START_S = 60.0
#: Commands that have subcommands.
GROUPS = ("log", "vault", "requests", "views", "audit", "kernelspec", "trace")
#: A line or cell that begins with a sign → its colour; the lines of a diff, likewise.
_SIGNS = {"32": re.compile(r"(?m)^✓ .*$|(?<=  )✓ \S+"), "31": re.compile(r"(?m)^✗ .*$|(?<=  )✗ \S+")}
_SIDES = {"32": re.compile(r"(?m)^\+.*$"), "31": re.compile(r"(?m)^-.*$"), "36": re.compile(r"(?m)^@@.*$")}
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


def typed(option: Option, *, both: bool = False, **more: Any) -> Any:
    """Return a row of the option table as typer takes it.

    both: a switch that can be turned off by `--no-…` too. more: typer's own arguments, such as `min`.
    """
    flag = f"{option.long_flag}/--no-{option.name}" if both else option.long_flag
    text = f"{option.text[0].upper()}{option.text[1:]}."
    return typer.Option(
        flag, metavar=option.metavar or None, help=text, show_default=both or bool(option.default), **more
    )


def takes(name: str, group: Sequence[Option], read: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """Give a command a group of options in place of its parameter of that name; it gets what `read` makes of them."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def with_options(**options: Any) -> int:
            given = {option.name: options.pop(option.name) for option in group}
            return function(**options, **{name: read(given)})

        signature = inspect.signature(function, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name != name:
                parameters.append(parameter)
                continue
            for option in group:
                kind = list[option.type] if option.many else option.type  # type: ignore[name-defined]  # made at run time
                annotation = Annotated[kind | None, typed(option)]  # type: ignore[valid-type]  # made at run time
                parameters.append(parameter.replace(name=option.name, annotation=annotation, default=None))
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by typer
        return with_options

    return decorate


DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="The database: a path or a URL.",
        show_default="HEALKIT_DB, then healkit.db",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]
PersonaOption = Annotated[str, typed(options.PERSONA)]
PERSONA = options.PERSONA.default

ErrorJson = Callable[[HealkitError], Any]


def error_json(error: HealkitError) -> dict[str, Any]:
    """Return a wrong call as JSON, as every command but `run` prints it."""
    return {
        "error": {
            "code": error.code,
            "ename": type(error).__name__,
            "evalue": error.message,
            "hint": error.hint.strip(),
        }
    }


def command(
    target: typer.Typer, name: str, *, on_error: ErrorJson = error_json, context: dict[str, Any] | None = None
) -> Any:
    """Register a command whose function returns its exit code.

    A `HealkitError` is printed on stderr (with `--json` as JSON on stdout too, with its code) and exits 2; Ctrl-C exits
    130.
    `context` is more of typer's context settings.
    """

    def register(function: Callable[..., int]) -> Callable[..., None]:
        wrapped = guarded(function, on_error)
        target.command(name, context_settings={**HELP_OPTIONS, **(context or {})})(wrapped)
        return wrapped

    return register


def guarded(function: Callable[..., int], on_error: ErrorJson = error_json) -> Callable[..., None]:
    """Wrap a command: print its errors, exit with its code; for `command`, and for groups that do work."""

    @functools.wraps(function)
    def wrapped(**options: Any) -> None:
        try:
            code = function(**options)
        except HealkitError as error:
            code = refuse(error, on_error if options.get("as_json") else None)
        except (KeyboardInterrupt, typer.Abort):  # Abort: at a question
            say("Stopped.")
            code = INTERRUPTED
        if code:
            raise typer.Exit(code)

    return wrapped


def refuse(error: HealkitError, as_json: ErrorJson | None) -> int:
    """Print an error in a terminal's words, with `as_json` as JSON too; return the exit code."""
    from healkit.rendering.hints import rephrase

    rephrase(error, "terminal", " ".join(["healkit", *_command_typed()]))
    if as_json is not None:
        print_json(as_json(error))
    say(str(error))
    return WRONG_CALL


def _command_typed() -> list[str]:
    """Return the command on this process's line: a word, or a group and its subcommand."""
    words = [*itertools.takewhile(str.isalpha, sys.argv[1:3])]
    return words if words[:1] and words[0] in GROUPS else words[:1]


def alone(app: typer.Typer, function: Callable[..., int]) -> None:
    """Have a group without a subcommand do what this function does, which is one of its commands.

    Options before a subcommand would not reach it, so they are refused.
    """

    @functools.wraps(function)
    def callback(context: typer.Context, **options: Any) -> int:
        if context.invoked_subcommand is None:
            return function(**options)
        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
        if given:
            flag = "--json" if given[0] == "as_json" else f"--{given[0].replace('_', '-')}"
            wrong(
                f"The options of `{context.command_path}` stand after its subcommand.",
                f"Move {flag} to the end.",
            )
        return OK

    signature = inspect.signature(function, eval_str=True)
    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    callback.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]  # read by typer
    app.callback(invoke_without_command=True)(guarded(callback))


def open_healkit(db: str | None, *, create: bool, many_runs: bool = False) -> Healkit:
    """Open the Healkit of `--db`; a command that only reads passes create=False and never makes a database.

    many_runs: for the demo. It executes several times, so that workers are worth keeping warm, and it may be the very
    first start on a slow machine, which reads everything from disk.
    """
    from healkit.app import Healkit  # here, not above: `--help` needs no database

    config = dataclasses.replace(Config.from_environment(), post_mortem_kept=0)
    if many_runs:
        config = dataclasses.replace(config, start_timeout_s=max(config.start_timeout_s, _FIRST_START_S))
    else:
        # One tool is run and the process ends: what would be kept warm for the next one is of no use to it.
        config = dataclasses.replace(config, nursery=False, spares=0)
    return Healkit(db, config=config, create=create)


def say(text: str) -> None:
    """Print a line for the person, on stderr: without secrets, with control characters spelt out."""
    typer.echo(_coloured(visible(_cleaned(text)), sys.stderr), err=True)


def put(text: str, *, exact: bool = False) -> None:
    """Print an answer on stdout, without secrets and with control characters spelt out: much of it is text of tools.

    exact: code, with all that is in it; a file or another program gets it as it is.
    """
    if exact and not sys.stdout.isatty():
        typer.echo(text)
    else:
        typer.echo(_coloured(visible(text if exact else _cleaned(text)), sys.stdout))


def _cleaned(text: str) -> str:
    from healkit.rendering import cleaning  # here, not above: `--help` shows no record

    return cleaning.text(text)


def _coloured(text: str, stream: TextIO) -> str:
    """Colour outcomes and diffs for a terminal, but not under NO_COLOR (no-color.org) or on a dumb one."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for colours in (_SIGNS, _SIDES if "\n@@ " in text else {}):
        for code, pattern in colours.items():
            text = pattern.sub(f"\x1b[{code}m\\g<0>\x1b[0m", text)
    return text


#: Keys of what the vault holds, which programs read back.
CODE = ("code", "diff")


def print_json(value: Any, *, exact: tuple[str, ...] = (), whole: bool = False) -> None:
    """Print the value on stdout, without secrets, as JSON that any terminal can show, in its encoding.

    exact: keys whose values stay as they are, such as `CODE`. whole: all of it stays: it is what was asked for.
    """
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    try:
        written = json.dumps(value, ensure_ascii=not utf8, default=str, indent=2)
    except ValueError:  # an int with more digits than Python writes
        written = json.dumps(readable(value)[0], ensure_ascii=not utf8, indent=2)
    if not whole:
        from healkit.rendering import cleaning

        cleaned = cleaning.data(json.loads(written), exact=exact)
        written = json.dumps(cleaned, ensure_ascii=not utf8, indent=2)
    typer.echo(seen_json(written))


def terminal_width() -> int | None:
    """Return the terminal's width, or None where stdout is no terminal and nothing should be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def read_code(source: str) -> str:
    """Read the text of a file, or of stdin for `-`; raise `UsageInvalid` where that fails."""
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageInvalid(
            f"Cannot read {source!r}: {reason}.", hint="Name a file, or - for stdin."
        ) from None


def failure_json(failure: Failure | None) -> dict[str, str] | None:
    """Return a failure as `{code, ename, evalue, traceback}`."""
    if failure is None:
        return None
    return {
        "code": failure.code,
        "ename": failure.ename,
        "evalue": failure.evalue,
        "traceback": failure.traceback,
    }


def execution_json(execution: Execution) -> dict[str, Any]:
    """Return a row of the log as JSON."""
    return {
        "log_id": execution.log_id,
        "timestamp": execution.timestamp.isoformat(),
        "tool_name": execution.tool_name,
        "persona": execution.persona,
        "revision": execution.revision,
        "status": execution.status,
        "arguments": readable(execution.arguments)[0],
        "result_summary": execution.result_summary,
        "duration_ms": execution.duration_ms,
        "isolation": execution.isolation,
        "origin": execution.origin,
        "trace_id": execution.trace_id,
        "run_id": execution.run_id,
        "error": failure_json(execution.failure),
    }


def wrong(message: str, hint: str = "") -> NoReturn:
    """Refuse the call."""
    raise UsageInvalid(message, hint=hint)

"""Commands in the terminal: options, exit codes, JSON."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TextIO, get_args

import typer

from healkit.commands.options import Option, OptionGroup
from healkit.commands.table import DB, INTERRUPTED, Answer, Command, Group, row_of
from healkit.config import Config
from healkit.core.crossing.values import readable
from healkit.errors import HealkitError, UsageInvalid
from healkit.faces.commands import rows
from healkit.plain_text import seen_json, visible

if TYPE_CHECKING:
    from healkit.app import Healkit

WRONG_CALL = 2
_FIRST_START_S = 60.0
#: Colour → a line or cell that begins with this sign; likewise for the lines of a diff.
_SIGNS = {"32": re.compile(r"(?m)^✓ .*$|(?<=  )✓ \S+"), "31": re.compile(r"(?m)^✗ .*$|(?<=  )✗ \S+")}
_SIDES = {"32": re.compile(r"(?m)^\+.*$"), "31": re.compile(r"(?m)^-.*$"), "36": re.compile(r"(?m)^@@.*$")}
_NEXT = re.compile(r"(?m)^(?:Next|To continue): healkit .+$")
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
_JSON = typer.Option("--json", help="Print JSON on stdout and nothing else.")


def group_of(group: Group) -> typer.Typer:
    """Return a group of commands for typer.

    Options before a subcommand would not reach it, so they are refused.
    """
    app = typer.Typer(help=group.help, context_settings=HELP_OPTIONS)
    default_command = group.commands[group.alone] if isinstance(group.alone, str) else group.alone
    function = for_terminal(default_command)

    @functools.wraps(function)
    def callback(context: typer.Context, **given: object) -> None:
        if context.invoked_subcommand is None:
            return function(**given)
        sources = {name: context.get_parameter_source(name) for name in context.params}
        before = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
        if before:
            flag = "--json" if before[0] == "as_json" else f"--{before[0].replace('_', '-')}"
            message = f"The options of `{context.command_path}` stand after its subcommand."
            as_json = error_json if given.get("as_json") else None
            raise typer.Exit(refuse(UsageInvalid(message, hint=f"Move {flag} to the end."), as_json))
        return None

    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    signature = inspect.signature(function)
    callback.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]  # read by typer
    app.callback(invoke_without_command=True)(callback)
    for name, command in group.commands.items():
        register(app, name, command)
    return app


def register(app: typer.Typer, name: str, command: Command) -> None:
    """Add a command."""
    passes_on = {"ignore_unknown_options": True, "allow_extra_args": True} if command.passes_on else {}
    app.command(name, context_settings={**HELP_OPTIONS, **passes_on})(for_terminal(command))


def for_terminal(command: Command) -> Callable[..., None]:
    """Return the function for typer: it opens the database, prints the answer and exits with its code.

    A `HealkitError` is printed on stderr (with `--json` also as JSON on stdout, with its code), and the exit code is 2.
    Ctrl-C exits with 130.
    """

    def run(**given: Any) -> None:
        as_json, db = given.pop("as_json", False), given.get("db")
        try:
            of_face = {"as_json": as_json, "open_healkit": open_healkit, "terminal": _OnTerminal(db)}
            wanted = {**command.read(given), **command.of_face("healkit ", **of_face)}
            if command.takes_healkit:
                with open_healkit(db, create=command.creates) as healkit:
                    answer = command.call(healkit, wanted)
                    show(answer, as_json, db)
            else:
                answer = command.function(**wanted)
                show(answer, as_json)
            code = answer.exit_code
        except HealkitError as error:
            code = refuse(error, (command.refusal or error_json) if as_json else None)
        except (KeyboardInterrupt, typer.Abort):  # Abort: at a question
            say("Stopped.")
            code = INTERRUPTED
        if code:
            raise typer.Exit(code)

    parameters = []
    for name, (parameter, kind) in command.parameters().items():
        row = row_of(kind)
        if isinstance(row, OptionGroup):
            parameters += [
                _parameter(option.name, _typer_type(option), typed(option), None) for option in row.rows
            ]
        else:
            typer_type, about = _taken(kind, row, parameter)
            parameters.append(_parameter(name, typer_type, about, parameter.default))
    if command.takes_healkit:
        parameters.append(_parameter("db", str | None, typed(DB), None))
    if command.json:
        has_db = bool(parameters) and parameters[-1].name == "db"
        parameters.insert(len(parameters) - has_db, _parameter("as_json", bool, _JSON, False))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
    run.__doc__ = command.function.__doc__
    run.__name__ = command.function.__name__
    return run


def open_healkit(db: str | None, *, create: bool, many_runs: bool = False) -> Healkit:
    """Open the Healkit of `--db`; a read-only command passes create=False and never creates a database.

    many_runs: The command executes several times, so that warm workers are useful. It may be the very first start on a
    slow machine, which reads everything from disk.
    """
    from healkit.app import Healkit  # late, because `--help` needs no database

    config = dataclasses.replace(Config.from_environment(), post_mortem_kept=0)
    if many_runs:
        config = dataclasses.replace(config, start_timeout_s=max(config.start_timeout_s, _FIRST_START_S))
    else:
        # One tool runs and the process ends: nothing needs to be kept warm for a next one.
        config = dataclasses.replace(config, fork_server=False, spares=0)
    return Healkit(db, config=config, create=create)


def _parameter(name: str, kind: object, about: object, default: object) -> inspect.Parameter:
    annotation = kind if about is None else Annotated[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _taken(kind: object, row: Option | None, parameter: inspect.Parameter) -> tuple[object, object]:
    """Return the type for typer; if the command gets another type, the row's type."""
    if row is None:
        return kind, None
    typer_type = get_args(kind)[0]
    if row.read is not None:
        typer_type = _typer_type(row) if parameter.default is None else row.type
    return typer_type, typed(row)


def _typer_type(row: Option) -> Any:
    return (list[row.type] if row.many else row.type) | None  # type: ignore[name-defined]  # made at run time


def typed(row: Option) -> Any:
    """Return a row of the option table as a typer option."""
    text = row.text if row.text[-1:] == "]" else f"{row.text}."
    limits = {"min": row.least, "max": row.most}
    more = {name: limit for name, limit in limits.items() if limit is not None}
    about: dict[str, Any] = {"metavar": row.metavar or None, "help": f"{text[0].upper()}{text[1:]}", **more}
    show_default = row.default_help or row.both or bool(row.default)
    if row.positional:
        return typer.Argument(**about, show_default=show_default)
    flag = f"{row.long_flag}/--no-{row.long_flag.removeprefix('--')}" if row.both else row.long_flag
    return typer.Option(flag, **about, show_default=show_default)


def show(answer: Answer, as_json: bool, db: str | None = None) -> None:
    """Print an answer: the result on stdout, messages on stderr."""
    if as_json:
        if answer.data is not None:
            print_json(answer.data(), exact=answer.exact)
    else:
        _put_answer(answer)
    for line in answer.notes if as_json else (*answer.hints, *answer.notes):
        say(_with_db(line, db))


def _put_answer(answer: Answer) -> None:
    if answer.text is not None:
        put(answer.text, exact=True)
    elif answer.said:
        put(answer.said)
    elif answer.shown is not None:
        from healkit.core.rendering import plain
        from healkit.core.rendering.to_text import text_of

        document = answer.shown()
        if isinstance(document, str):
            put(document)
        elif answer.clipped:
            put(plain.clipped(text_of(document), terminal_width()))
        else:
            put(text_of(document, terminal_width() if answer.table else None))


def error_json(error: HealkitError) -> dict[str, Any]:
    """Return a wrong call as JSON, in the form of every command except `run`."""
    return {
        "error": {
            "code": error.code,
            "ename": type(error).__name__,
            "evalue": error.message,
            "hint": error.hint.strip(),
        }
    }


def refuse(error: HealkitError, as_json: Callable[[HealkitError], object] | None) -> int:
    """Print an error in a terminal's words, and with `as_json` as JSON too; return the exit code."""
    from healkit.faces.commands.hints import rephrase

    rephrase(error, "terminal", " ".join(["healkit", *_command_typed()]))
    if as_json is not None:
        print_json(as_json(error))
    say(str(error))
    return WRONG_CALL


def _command_typed() -> list[str]:
    """Return the command of this process's command line: a word, or a group and its subcommand."""
    words = [*itertools.takewhile(str.isalpha, sys.argv[1:3])]
    return words if words and isinstance(rows.find(words[0]), Group) else words[:1]


def say(text: str) -> None:
    """Print a line on stderr for a person, without secrets, with control characters made visible."""
    typer.echo(_coloured(visible(_cleaned(text)), sys.stderr), err=True)


def _with_db(text: str, db: str | None) -> str:
    """Add `--db` to the command that a line suggests, for the same database."""
    return text if db is None else _NEXT.sub(lambda line: f"{line[0]} --db {shlex.quote(db)}", text)


def put(text: str, *, exact: bool = False) -> None:
    """Print an answer on stdout, without secrets and with visible control characters, because tools wrote much of it.

    exact: Code, with all its contents; a file or another program gets it unchanged.
    """
    if exact and not sys.stdout.isatty():
        typer.echo(text)
    else:
        typer.echo(_coloured(visible(text if exact else _cleaned(text)), sys.stdout))


class _OnTerminal:
    """This process's terminal, an implementation of `commands.table.Terminal`."""

    put = staticmethod(put)

    def __init__(self, db: str | None) -> None:
        self._db = db

    def say(self, text: str) -> None:
        say(_with_db(text, self._db))

    def print_json(self, value: object, *, exact: tuple[str, ...] = ()) -> None:
        print_json(value, exact=exact)

    def ask(self, question: str, default: str, *, shown: bool = True) -> str:
        answer: str = typer.prompt(question, default=default, show_default=shown, err=True)
        return answer

    def confirm(self, question: str) -> bool:
        return typer.confirm(question, default=True, err=True)

    def read(self, prompt: str) -> str:
        typer.echo(prompt, nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line


def _cleaned(text: str) -> str:
    from healkit.core.rendering import cleaning  # late, because `--help` shows no record

    return cleaning.text(text)


def _coloured(text: str, stream: TextIO) -> str:
    """Colour outcomes and diffs for a terminal, except under NO_COLOR (no-color.org) or on a dumb terminal."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for colours in (_SIGNS, _SIDES if "\n@@ " in text else {}):
        for code, pattern in colours.items():
            text = pattern.sub(f"\x1b[{code}m\\g<0>\x1b[0m", text)
    return text


def print_json(value: object, *, exact: tuple[str, ...] = (), whole: bool = False) -> None:
    """Print the value on stdout as JSON, without secrets, in the terminal's encoding.

    exact: Keys whose values are not changed, such as `CODE`. whole: Change nothing, because the user asked for exactly
    this value.
    """
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    try:
        written = json.dumps(value, ensure_ascii=not utf8, default=str, indent=2)
    except ValueError:  # an int with more digits than Python prints
        written = json.dumps(readable(value)[0], ensure_ascii=not utf8, indent=2)
    if not whole:
        from healkit.core.rendering import cleaning

        cleaned = cleaning.data(json.loads(written), exact=exact)
        written = json.dumps(cleaned, ensure_ascii=not utf8, indent=2)
    typer.echo(seen_json(written))


def terminal_width() -> int | None:
    """Return the terminal's width; None if stdout is not a terminal, so that nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

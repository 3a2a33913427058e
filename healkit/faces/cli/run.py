"""Commands that run tools: run, demo."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from healkit.commands import options
from healkit.commands.options import Option, word
from healkit.commands.parsing import (
    given_arguments,
    sample_call,
    split_assignments,
    split_label,
    value_of,
)
from healkit.commands.table import DB, FAILED, INTERRUPTED, OK, Answer, Command, Json, wrong
from healkit.core.plain_files import temporary_folder
from healkit.errors import ArgumentsInvalid, HealkitError
from healkit.faces.cli.command import open_healkit, print_json, say
from healkit.faces.commands.log import failure_json
from healkit.plain_text import drawn

if TYPE_CHECKING:
    from healkit.core.runtime.execution import Execution

_COLOURS_OFF = "\x1b[0m"
_MCP = Option("mcp", "MCP servers it may be granted: an mcpServers JSON", metavar="FILE")
_RECORD = options.RECORD.replace(help=f"{options.RECORD.help}: `healkit trace show`")


def run(
    tool: Annotated[str, word("the tool's name")],
    assigned: Annotated[list[str] | None, word("its arguments; or --args", "[NAME=VALUE]…")] = None,
    persona: Annotated[str, options.PERSONA] = "default",
    args: Annotated[str | None, options.ARGS] = None,
    timeout: Annotated[float | None, options.TIMEOUT] = None,
    mcp: Annotated[Path | None, _MCP] = None,
    record: Annotated[bool, _RECORD] = False,
    retry: Annotated[bool, options.RETRY] = False,
    db: Annotated[str | None, DB] = None,
    *,
    as_json: bool,
) -> Answer:
    """Run a tool in a restricted worker. Exit 0: it returned; 1: it failed; 2: the call was wrong."""
    rest, texts = split_assignments(assigned or ())
    if Path(tool).suffix in (".py", ".sql"):
        name = Path(tool).stem
        wrong(
            f"{tool!r} is a file, not a tool.",
            f"Add it: healkit vault add {name} {tool}; then: healkit run {name}",
        )
    name, in_label, revision = split_label(tool)
    if revision is not None:
        wrong(f"{tool!r} names a revision, and the active one is what is run.", f"Run {name!r}.")
    outputs = _Outputs(sys.stderr if as_json else sys.stdout)
    with open_healkit(db, create=False) as healkit:
        if rest:
            schema = healkit.vault.get(name, in_label or persona).input_schema
            free = (parameter for parameter in schema.get("properties", {}) if parameter not in texts)
            named = [f"{next(free, 'NAME')}={shlex.quote(text)}" for text in rest]
            named += [f"{parameter}={shlex.quote(text)}" for parameter, text in texts.items()]
            wrong(
                f"Arguments need names: healkit run {tool} {' '.join(named)}.",
                "Or give --args with a JSON object.",
            )
        arguments = given_arguments(args, {word: value_of(text) for word, text in texts.items()})
        if mcp is not None:
            healkit.connect_all(mcp)
        try:
            execution = healkit.execute(
                name,
                in_label or persona,
                arguments,
                timeout=timeout,
                origin="cli",
                on_output=outputs.show,
                record=record or None,
                retry=retry,
            )
        except ArgumentsInvalid as error:
            entry = healkit.vault.get(name, in_label or persona)
            if error.message.startswith(entry.label):  # about names of arguments, not about size
                write = f"Write healkit run {tool}{sample_call(entry, quote=_quoted)}"
                error.hint = f"{error.hint} {write}".lstrip()
            raise
    outputs.end()
    return Answer(exit_code=_print_outcome(execution, as_json))


def _quoted(value: object) -> str:
    """Quote a value so that a shell and `value_of` read it unchanged."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value_of(value) != value:
        text = json.dumps(value)
    return shlex.quote(text)


def demo(db: Annotated[str | None, DB] = None) -> Answer:
    """Play a story of nine steps, in about a minute: you fix a broken tool by hand, then healkit heals others."""
    from rich.console import Console

    from healkit.faces.cli.demo import run_demo

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="healkit-demo-", dir=temporary_folder())
        )
        path = db or str(Path(folder) / "healkit.db")
        healkit = stack.enter_context(open_healkit(path, create=True, many_runs=True))
        return Answer(exit_code=OK if run_demo(Console(), healkit) else FAILED)


def _print_outcome(execution: Execution, as_json: bool) -> int:
    """Print the result; return the exit code."""
    if as_json:
        print_json(_outcome(execution), exact=("value",))
    elif execution.failure is None:
        _print_value(execution.value)
        from healkit.core.rendering import execution_card as cards
        from healkit.core.rendering.to_text import text_of

        say(text_of(cards.success(execution)))
    else:
        from healkit.core.rendering import execution_card as cards
        from healkit.core.rendering.to_text import text_of

        say(text_of(cards.card(execution, face="terminal")))
        if execution.log_id is not None:  # below the card's own next steps
            say(f"{'':13}healkit log show {execution.log_id}")
    if execution.failure is not None and execution.failure.code == "TOOL_KILLED":
        return INTERRUPTED
    return OK if execution.ok else FAILED


def _outcome(execution: Execution) -> Json:
    return {
        "status": execution.status,
        "value": execution.value,
        "log_id": execution.log_id,
        "trace_id": execution.trace_id,
        "duration_ms": execution.duration_ms,
        "isolation": execution.isolation,
        "error": failure_json(execution.failure),
        **({"run_id": execution.run_id} if execution.run_id else {}),
    }


def refusal(error: HealkitError) -> Json:
    """Return a refused call in the form of an outcome; its row, if any, also says FAILURE."""
    failure = {"code": error.code, "ename": type(error).__name__, "evalue": str(error), "traceback": ""}
    nothing = dict.fromkeys(("trace_id", "duration_ms", "isolation"))
    return {"status": "FAILURE", "value": None, "log_id": error.log_id, **nothing, "error": failure}


COMMANDS = {"run": Command(run, refusal=refusal), "demo": Command(demo, json=False)}


def _print_value(value: object) -> None:
    """Print text unchanged, any other value as JSON, and nothing for None, like a Python prompt."""
    if isinstance(value, str):
        safe_text = drawn(value)
        typer.echo(f"{safe_text}{_COLOURS_OFF}" if _coloured_at_end(safe_text, before=False) else safe_text)
    elif value is not None:
        print_json(value, whole=True)


class _Outputs:
    """Passes on text that a tool prints or displays; its traceback is printed at the end."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._coloured: set[TextIO] = set()

    def show(self, output: dict[str, Any]) -> None:
        """Print one output in a form that is safe for a terminal."""
        if output.get("output_type") == "stream":
            text, stream = (
                output.get("text", ""),
                sys.stderr if output.get("name") == "stderr" else self._stdout,
            )
        else:
            text, stream = output.get("data", {}).get("text/plain", ""), self._stdout
            text = f"{text}\n" if text else ""
        safe_text = drawn(text if isinstance(text, str) else "".join(text))
        (
            self._coloured.add
            if _coloured_at_end(safe_text, stream in self._coloured)
            else self._coloured.discard
        )(stream)
        stream.write(safe_text)
        stream.flush()

    def end(self) -> None:
        """Reset the tool's colours, so that they do not affect the lines below."""
        for stream in self._coloured:
            stream.write(_COLOURS_OFF)
            stream.flush()


def _coloured_at_end(text: str, before: bool) -> bool:
    """Return True if a colour is still on after the text; `before` says so for its beginning."""
    _, colour, rest = text.rpartition("\x1b[")
    return not rest.startswith(("0m", "m")) if colour else before

"""Reference pages, generated from the code: commands, magics, settings, errors, schemas and fixes."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import healkit
from healkit import Healkit, errors
from healkit.commands.options import Option, OptionGroup
from healkit.commands.table import Command, Group, row_of
from healkit.config import settings
from healkit.faces.commands import rows
from healkit.faces.mcp_server.own_tools import own_tools
from healkit.faces.notebook.magic_parsers import PARSERS
from healkit.parts.explain import catalogue

#: Folder of the generated pages, below the other pages.
REFERENCE = "reference"
_CODES = Path(__file__).with_name("error_codes.toml")
_SCHEMAS = Path(__file__).with_name("schemas")


def cell(text: object) -> str:
    """Return a text that can stand in a cell of a table."""
    return str(text).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def code(text: str) -> str:
    """Return a text as code, whatever backticks are in it."""
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("|", "\\|")


def head(title: str, about: str) -> Iterator[str]:
    """Yield a page's title and its first paragraph."""
    yield from [f"# {title}", "", about]


def table(*heads: str) -> Callable[[Iterator[tuple[object, ...]]], Iterator[str]]:
    """Return what makes the lines of a table of its rows; nothing of no rows."""

    def lines(cells: Iterator[tuple[object, ...]]) -> Iterator[str]:
        body = [f"| {' | '.join(map(cell, row))} |" for row in cells]
        if body:
            yield from ["", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *body, ""]

    return lines


def settings_page() -> Iterator[str]:
    """Yield the lines of the page of settings."""
    yield from head(
        "Settings",
        "Each setting is a field of `healkit.Config` and an environment variable. The variable counts "
        "where code gives no `config=`. `healkit doctor` and `%healkit doctor` show which settings differ "
        "from their defaults.",
    )
    found = (
        (
            code(one.variable),
            code(repr(one.default)),
            f"{one.help[:1].upper()}{one.help[1:]}{f' ({one.unit})' if one.unit else ''}.",
        )
        for one in settings()
    )
    yield from table("Variable", "Default", "Meaning")(found)


def errors_page() -> Iterator[str]:
    """Yield the lines of the page of error codes: the meaning of each, and what helps."""
    yield from head(
        "Error codes",
        "A failure that healkit reports has a stable code. `execution.failure.code` holds it, and so does "
        "`error.code` of an exception.",
    )
    for name, meaning in errors.catalogue().items():
        yield from ["", f"({name.lower().replace('_', '-')})=", f"## {name}", ""]
        yield f"{meaning[:1].upper()}{meaning[1:].rstrip('.')}."
        cause, cure = error_help(name)
        yield from ["", f"**Cause.** {cause}", "", f"**What to do.** {cure}"]
        if errors.is_retryable(name):
            yield from ["", "**Try again.** The same call may succeed later."]


@cache
def error_codes() -> dict[str, dict[str, str]]:
    """Return cause and cure of the codes that no card explains."""
    return tomllib.loads(_CODES.read_text())


def error_help(name: str) -> tuple[str, str]:
    """Return cause and cure of a code; raise `KeyError` for one that has neither here nor on a card."""
    if name in error_codes():
        return error_codes()[name]["cause"], error_codes()[name]["cure"]
    text = next(text for pattern in catalogue.patterns() if name in pattern.raises for text in pattern.texts)
    if not text.why or "{" in text.why + text.fix:
        raise KeyError(name)
    return text.why, text.fix or text.hint


def _options(command: Command) -> Iterator[tuple[object, ...]]:
    for name, (parameter, kind) in command.parameters().items():
        row = row_of(kind)
        for option in row.rows if isinstance(row, OptionGroup) else [row]:
            if option is None:
                yield code(name.upper()), ""
            else:
                yield code(_typed(option, name)), _about(option, parameter.default)


def _typed(option: Option, name: str) -> str:
    if option.positional:
        return option.metavar or name.upper()
    value = "" if option.type is bool else f" {option.metavar or option.type.__name__.upper()}"
    return f"{option.long_flag}{value}"


def _about(option: Option, default: object) -> str:
    text = f"{option.text[:1].upper()}{option.text[1:]}."
    if option.choices:
        text += f" One of {', '.join(option.choices)}."
    if option.default_help or (default not in (None, False, inspect.Parameter.empty, "", ())):
        text += f" Default: {option.default_help or default}."
    return text


def _help_of(command: Command) -> str:
    return textwrap.dedent(f"    {inspect.getdoc(command.function) or ''}").strip()


def commands_page() -> Iterator[str]:
    """Yield the lines of the page of commands."""
    yield from head(
        "Commands",
        "`healkit COMMAND --help` prints the same on a terminal. Commands that open a database take `--db "
        "URL`, and those with something to print for a program take `--json`. Exit codes: 0, it did what "
        "it is for; 1, what it ran or checked is not in order; 2, the command line is wrong; 130, Ctrl-C.",
    )
    for name in rows.names():
        row = rows.find(name)
        if isinstance(row, Group):
            yield from ["", f"## healkit {name}", "", f"{row.help.rstrip('.')}."]
            for word, command in row.commands.items():
                yield from _command(f"healkit {name} {word}", command, "###")
        elif row is not None:
            yield from _command(f"healkit {name}", row, "##")


def _command(typed: str, command: Command, mark: str) -> Iterator[str]:
    yield from ["", f"{mark} {typed}", "", _help_of(command)]
    yield from table("Word or option", "Meaning")(_options(command))


def magics_page() -> Iterator[str]:
    """Yield the lines of the page of magics."""
    yield from head(
        "Magics",
        "After `%load_ext healkit`. `%NAME --help` prints the same in a notebook, and each flag is "
        "completed with Tab.",
    )
    for make in PARSERS.values():
        parser = make()
        yield from ["", f"## {parser.prog}", "", (parser.description or "").strip()]
        actions = (
            (
                code(", ".join(action.option_strings) or str(action.metavar or action.dest)),
                _sentence(action.help),
            )
            for action in parser._actions
            if not isinstance(action, argparse._HelpAction)
        )
        yield from table("Word or flag", "Meaning")(actions)
        if parser.epilog:
            yield parser.epilog.strip()


def _sentence(text: str | None) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def mcp_tools_page() -> Iterator[str]:
    """Yield the lines of the page of the MCP server's tools."""
    yield from head(
        "Tools of the MCP server",
        "`healkit mcp` offers these tools to an agent, beside the tools of the vault. "
        "[Agents](../agents.md) says how to connect one.",
    )
    for tool in own_tools():
        yield from ["", f"## {tool.name}", "", (tool.description or "").strip()]
        schema = tool.inputSchema if hasattr(tool, "inputSchema") else tool.input_schema
        needed = set(schema.get("required", ()))
        properties = (
            (code(name), cell(_type_of(about)), "yes" if name in needed else "no")
            for name, about in schema.get("properties", {}).items()
        )
        yield from table("Argument", "Type", "Needed")(properties)


def _type_of(schema: dict[str, Any]) -> str:
    kinds = [schema, *schema.get("anyOf", ())]
    return " or ".join(dict.fromkeys(str(kind["type"]) for kind in kinds if "type" in kind)) or "any"


def schemas_page() -> Iterator[str]:
    """Yield the lines of the page of schemas."""
    yield from head(
        "Schemas",
        "JSON Schemas of the files that other programs read: the lines of a `trace.jsonl`, and the "
        "manifests of a [run folder](../run_folder.md).",
    )
    for path in sorted(_SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text())
        yield from ["", f"## {path.stem}", ""]
        if about := schema.get("description"):
            yield from [about, ""]
        yield from [":::{dropdown} Schema", "```json", json.dumps(schema, indent=2), "```", ":::"]


def fixes_page() -> Iterator[str]:
    """Yield the lines of the page of fixes: the mistakes that rules can fix, each with an example."""
    yield from head(
        "Kinds of fixes",
        "Mistakes that healkit's rules propose a fix for, with an example each. [Rules](../rules.md) says "
        "how they are used, and [healing](../healing.md) how a proposal is checked. The kind says what an "
        "edit does to the meaning of the code.",
    )
    for name, subject in sorted(catalogue.subjects().items()):
        fixes = [subject.fix[key] for key in sorted(subject.fix)]
        if not fixes:
            continue
        yield from ["", f"## {name.replace('_', ' ').capitalize()}"]
        for fix in fixes:
            yield from ["", f"**{fix.mistake[:1].upper()}{fix.mistake[1:]}.** Kind: {fix.kind}."]
            yield from ["", "```python", fix.example.before.rstrip(), "```"]
            if fix.example.after:
                yield from ["", "becomes", "", "```python", fix.example.after.rstrip(), "```"]


#: Parts that an open Healkit has for its own use, and methods of parts that only other parts call.
_INNER = {
    "services",
    "recorder",
    "executor",
    "runner",
    "database",
    "config",
    "view_keeper",
    "replays",
    "suggester",
    "learning_thread",
    "retention",
    "audit.extend_within",
    "host.call",
    "host.definitions",
    "host.expect",
    "runs.forget",
    "runs.step",
    "traces.close",
    "traces.notify",
    "traces.start",
}
_SHOWN_APART = ("Config", "Execution", "Tool", "ToolExecutionError")

#: Code from which each example of the page starts.
SETUP = r'''
import asyncio
import sys
from pathlib import Path

import pandas as pd

import healkit
from healkit import Config, Healkit

MEAN = """\
def mean(values: list):
    return sum(values) / len(values)
"""
RATIO = """\
def ratio(hits: int, games: int):
    return hits / games
"""
hk = Healkit("healkit.db")
hk.vault.add("mean", MEAN)
hk.vault.add("ratio", RATIO)
failed = hk.execute("ratio", arguments={"hits": 3, "games": 0})
'''.strip()


@dataclasses.dataclass(frozen=True)
class Entry:
    """Entry of the page of the Python API.

    heading: Its heading, with the signs for its level.
    value: The class or function that it describes.
    typed: How a call of it is typed; empty for a class that the page shows without its signature.
    same_as: The name of an earlier entry for the same function, if there is one.
    """

    heading: str
    value: Any
    typed: str = ""
    same_as: str = ""

    @property
    def name(self) -> str:
        """Name of the class or function, as in the heading."""
        return self.heading.lstrip("# ")

    @property
    def text(self) -> str:
        """Docstring of the class or function."""
        return inspect.getdoc(self.value) or ""


def api_entries() -> Iterator[Entry]:
    """Yield the entries of the page of the Python API, in their order."""
    yield Entry("## healkit.Healkit", Healkit, "Healkit")
    with tempfile.TemporaryDirectory() as folder, Healkit(Path(folder) / "healkit.db") as hk:
        seen: dict[Any, str] = {}
        parts: dict[str, object] = {}
        for name in sorted(name for name in dir(hk) if not name.startswith("_")):
            value = getattr(hk, name)
            if inspect.isroutine(value):
                seen[_function(value)] = f"hk.{name}"
                yield Entry(f"### hk.{name}", value, f"hk.{name}")
            elif type(value).__module__.startswith("healkit.") and name not in _INNER:
                parts[name] = value
        for name, value in parts.items():
            yield Entry(f"## hk.{name}", type(value))
            for below, method in inspect.getmembers(value, inspect.isroutine):
                if not below.startswith("_") and f"{name}.{below}" not in _INNER:
                    typed, same_as = f"hk.{name}.{below}", seen.get(_function(method), "")
                    yield Entry(f"### {typed}", method, typed, same_as)
    for name in _SHOWN_APART:
        value = getattr(healkit, name)
        yield Entry(f"## healkit.{name}", value)
        for below, method in inspect.getmembers(value, inspect.isfunction):
            if not below.startswith("_") and method.__module__.startswith("healkit."):
                yield Entry(f"### {name}.{below}", method, f"{name.lower()}.{below}")
    for name in ("execute_tool", "sanitize"):
        yield Entry(f"## healkit.{name}", getattr(healkit, name), f"healkit.{name}")


def _function(method: Any) -> Any:
    """Return the function behind a method, also behind one of the face."""
    return inspect.unwrap(getattr(method, "__func__", method))


def api_page() -> Iterator[str]:
    """Yield the lines of the page of the Python API: an open Healkit, its parts, and the functions of the package."""
    yield from head(
        "Python API",
        "Everything starts at `Healkit`; below, `hk` is one that is open. These names are stable, others "
        "may change. Each entry has an example, and each example starts from this code:",
    )
    yield from ["", "```python", SETUP, "```"]
    for entry in api_entries():
        yield from ["", entry.heading, ""]
        if entry.typed:
            yield from ["```python", _call(entry), "```", ""]
        if entry.same_as:
            yield f"The same as `{entry.same_as}`."
        else:
            yield from _docstring(entry.text)


def _call(entry: Entry) -> str:
    """Return how a call is typed: its parameters with their defaults, and the type of its result."""
    signature = inspect.signature(entry.value)
    parameters = [
        one.replace(annotation=one.empty) for one in signature.parameters.values() if one.name != "self"
    ]
    shown = f"{entry.typed}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"
    result = str(signature.return_annotation).replace("builtins.", "")
    is_known = not inspect.isclass(entry.value) and result != "Any"
    return f"{'await ' if inspect.iscoroutinefunction(entry.value) else ''}{shown}{f' -> {result}' if is_known else ''}"


def _docstring(text: str) -> Iterator[str]:
    """Yield a docstring as Markdown: `name: …` begins an item of a list, and an example is code."""
    in_example = False
    for line in text.splitlines():
        is_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if is_example != in_example:
            yield from ["", "```pycon"] if is_example else ["```", ""]
            in_example = is_example
        argument = re.match(r"([a-z_]\w*(?:, [a-z_]\w*)*): (.+)", line)
        if argument and not in_example:
            yield f"- `{argument[1]}`: {argument[2]}"
        else:
            yield line.replace("<BLANKLINE>", "") if in_example else _escaped(line)
    if in_example:
        yield "```"


def _escaped(line: str) -> str:
    return line.replace("<", "&lt;").replace("[", "\\[") if "`" not in line else line


#: Name of each page → its lines.
PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "api": api_page,
    "commands": commands_page,
    "errors": errors_page,
    "fixes": fixes_page,
    "magics": magics_page,
    "mcp_tools": mcp_tools_page,
    "schemas": schemas_page,
    "settings": settings_page,
}


def write_pages(folder: Path) -> None:
    """Write the pages into a folder; one that is as it should be stays, so that Sphinx need not read it again."""
    folder.mkdir(exist_ok=True)
    for name, lines in PAGES.items():
        text = "\n".join(lines()) + "\n"
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)

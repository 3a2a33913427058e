"""Tools as data: what may cross the border to a worker.

A worker never receives a function of the host. It receives a definition (names, text, a JSON schema) and builds a proxy
from it. So no code in the worker can reach an object of the host.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

import msgspec

#: A JSON value.
Json = Any


class ToolDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tool as its caller sees it: `mcp.<server>.<name>(**arguments)`.

    input_schema: A JSON Schema (draft 2020-12) of the arguments object.
    read_only: The provider says that a call changes nothing (MCP's `readOnlyHint`).
    acts: The provider declares effects (`destructiveHint`).
    """

    server: str
    name: str
    description: str = ""
    input_schema: dict[str, Json] = {}
    read_only: bool = False
    acts: bool = False


class Withheld(msgspec.Struct, frozen=True, omit_defaults=True):
    """Files that only the tool's accepted code may read, and code on trial may not: `paths` without `named`."""

    paths: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    def has(self, path: str) -> bool:
        """Return True if this absolute path is one of the files, or in one of the folders."""
        return _lies_in(path, self.paths) and not _lies_in(path, self.named)


def _lies_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


class EntryRef(msgspec.Struct, frozen=True):
    """Reference to the revision of a vault entry that an execution runs.

    Tracebacks show its `filename`: `<fibonacci@2>`, or `<fibonacci.teacher@2>` for a persona other than `default`.
    """

    tool_name: str
    persona: str
    revision: int
    code_hash: str

    @property
    def label(self) -> str:
        """Name and revision for display: `fibonacci v2`, or `fibonacci v2 (teacher)`."""
        return revision_label(self.tool_name, self.persona, self.revision)

    @property
    def address(self) -> str:
        """Name and revision as a user types them: `fibonacci@2`, or `fibonacci.teacher@2`."""
        return revision_address(self.tool_name, self.persona, self.revision)

    @property
    def filename(self) -> str:
        """File name of the code object; the angle brackets show that it is not a real file."""
        return f"<{self.address}>"


class Tool:
    """Base of tools written as a class: derive from it and define `run(arguments)`.

    The worker makes one instance for each execution and calls `run` once, with the validated arguments.

    Example:
    >>> code = '''
    ... class Greeter(Tool):
    ...     def run(self, arguments):
    ...         return f"Hello {arguments['name']}"
    ... '''
    >>> _ = hk.vault.add("greeter", code)
    >>> hk.execute("greeter", arguments={"name": "Ada"}).value
    'Hello Ada'
    """

    def run(self, arguments: dict[str, Json]) -> Any:
        """Do the work and return the result; called once by the worker, with the arguments by name.

        Example:
        >>> class Doubled(healkit.Tool):
        ...     def run(self, arguments):
        ...         return 2 * arguments["n"]
        >>> Doubled().run({"n": 21})
        42
        """
        raise NotImplementedError(f"{type(self).__name__} derives from Tool but defines no run(arguments)")


def is_valid_name(name: str) -> bool:
    """Return True if `name` can stand in `mcp.<server>.<name>`: an identifier, no keyword, no leading underscore."""
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


# Names of revisions and cells, for display and for typing.


_FILENAME = re.compile(r"<(?P<tool>[^.@<>]+)(?:\.(?P<persona>[^@<>]+))?@(?P<revision>\d+)>")


def revision_label(tool_name: str, persona: str, revision: int | None) -> str:
    """Format a revision for display: `fibonacci v2`, or `fibonacci v2 (teacher)` for another persona."""
    number = f" v{revision}" if revision else ""
    return f"{tool_name}{number}" + ("" if persona == "default" else f" ({persona})")


def revision_address(tool_name: str, persona: str, revision: int) -> str:
    """Format a revision for typing and storage: `fibonacci@2`, or `fibonacci.teacher@2`."""
    return f"{tool_name}{'' if persona == 'default' else f'.{persona}'}@{revision}"


def place_label(filename: str) -> str:
    """Format a frame's file for display: `fibonacci v2` for `<fibonacci@2>`, `In [3]` for `<In [3]>`."""
    match = _FILENAME.fullmatch(filename)
    if match is None:
        return filename.strip("<>")
    return revision_label(match["tool"], match["persona"] or "default", int(match["revision"]))

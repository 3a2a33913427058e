"""Broken programs, as a healer may see them.

A program is what goes into a vault: code, description, visible examples. What else there is to know (more examples, a
reference solution) is the scorer's, and nothing in here reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import tomllib
from pathlib import Path
from typing import Any

from heal.notation import made
from heal.world import FILES

from healkit.core.crossing import values
from healkit.parts.teach.gallery import LESSONS

#: The sets that were written for this purpose. No healer is tuned to `fresh`, `held_out`, `sealed` or `blind`; the last
#: three are for one measurement. `frames` belongs to `own`: its tools take frames, series and arrays. The tools of
#: `calls` call what is in `world`, or read its files.
WRITTEN = ("own", "frames", "reported", "dev", "fresh", "held_out", "sealed", "blind", "calls")
#: What a healer may see of each.
_SETS = Path(__file__).parent / "sets"
#: `{"arguments": {…}, "result": …}` or `{"call": "…", "result": …}`: for this, that is right. Values are in their kept
#: form (`healkit.core.crossing.values`).
Example = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """Broken tool.

    examples: what its owner says is right; `failing` is the position of the one that was run and went wrong. kind,
    shows, bugs, places: which mistake it is, how it shows (`raises`, `wrong`, `hangs`, `draft`), how many mistakes
    there are, and in how many places; for the tables, the healer is not told. knowable: whether code and examples are
    enough to know what is right. in_world: it calls, or reads files, of `world`.
    """

    name: str
    code: str
    examples: tuple[Example, ...]
    description: str = ""
    input_schema: dict[str, Any] | None = None
    kind: str = ""
    shows: str = ""
    bugs: int = 1
    places: int = 1
    knowable: bool = True
    failing: int = 0
    timeout_s: float = 2.0
    in_world: bool = False
    fails: int = 0

    @property
    def grants(self) -> dict[str, list[str]] | None:
        """Grants that it needs: those that read files may read the world's."""
        return {"read": [str(FILES)]} if str(FILES) in str(self.examples) else None

    @property
    def draft(self) -> bool:
        """True if it does not even parse."""
        return self.shows == "draft"


def own() -> list[Program]:
    """Return the project's own broken tools."""
    return written("own")


def written(set_name: str) -> list[Program]:
    """Return the broken tools of one of the sets in `WRITTEN`, in the order of its file."""
    more = {"in_world": True, "timeout_s": 10.0} if set_name == "calls" else {}
    return [
        Program(name=name, **more, **table | {"examples": tuple(table["examples"])})
        for name, table in tables(_SETS / f"{set_name}.toml").items()
    ]


@functools.cache
def tables(path: Path) -> dict[str, dict[str, Any]]:
    """Read a set's file: a TOML table for each tool, with code as it stands and one example in JSON on each line.

    Frames in it are written as `notation` says. `$FILES` stands for the folder of the world's files.

    Literal strings (three single quotes) keep code readable, and a diff of it too; JSON has null, which TOML lacks.
    """
    read = tomllib.loads(path.read_text(encoding="utf-8").replace("$FILES", str(FILES)))
    return {
        name: table | {"examples": [_example(line) for line in table["examples"].strip().split("\n")]}
        for name, table in read.items()
    }


def _example(line: str) -> Example:
    example = json.loads(line)
    if "$" not in line:
        return example
    arguments = {name: values.kept(made(value)) for name, value in example.get("arguments", {}).items()}
    return example | {"arguments": arguments, "result": values.kept(made(example["result"]))}


def gallery() -> list[Program]:
    """Return the gallery's lessons that are Python; a SQL statement is not searched on."""
    return [
        Program(
            name=lesson.name,
            code=lesson.code,
            examples=lesson.examples,
            description=lesson.description,
            input_schema=lesson.input_schema,
            kind=lesson.ename or "wrong value",
            shows="wrong" if lesson.ename is None else "raises",
            failing=[example["arguments"] for example in lesson.examples].index(lesson.failing),
        )
        for lesson in LESSONS
        if lesson.type == "python"
    ]


__all__ = ["WRITTEN", "Example", "Program", "gallery", "own", "tables", "written"]

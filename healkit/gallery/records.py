"""Records of the gallery: samples and lessons."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

_HERE = Path(__file__).parent

#: `{"arguments": {…}, "result": …}`: for these arguments, this is right.
Example = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """A tool as the seeding registers it.

    `file` is its code, relative to the gallery. `input_schema` is given where no signature can be read: a
    class, a script, a SQL statement; None means that the vault derives it. `description` likewise falls back
    to the docstring.
    """

    name: str
    file: str
    title: str
    examples: tuple[Example, ...] = ()
    input_schema: dict[str, Any] | None = None
    description: str = ""

    @property
    def code(self) -> str:
        """Text of the code's file."""
        return (_HERE / self.file).read_text(encoding="utf-8")

    @property
    def type(self) -> Literal["python", "sql"]:
        """`sql` for a statement, `python` for everything else."""
        return "sql" if self.file.endswith(".sql") else "python"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lesson(Sample):
    """A tool with one classic mistake.

    `failing` are arguments that show the mistake: the tool then raises an exception of the type `ename`, or,
    where `ename` is None, returns `wrong_value` without complaint. `examples` say what is right, for
    `failing` and for more. `mistake` names the mistake for the teacher; `question` is what to ask a class.
    """

    mistake: str
    question: str
    failing: dict[str, Any]
    ename: str | None = None
    wrong_value: Any = None


def object_schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties, all required, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

"""Gallery of tools that are broken in the classic ways.

Each lesson is one vault entry with one mistake, the arguments that show it, and the question that leads a class to it.
Beside them stand healthy sample tools and two small tables of data. Everything here is data: `gallery.toml` describes
the tools, and their code is kept in files of its own, as the vault stores it, and is never imported.

`hidden_examples.json` holds further examples of what is right. Only tests and benchmarks may open it; nothing in the
package reads it. It shows whether a patch that was found with the lesson's own examples is correct or only fits them.
"""

from __future__ import annotations

import csv
import dataclasses
import tomllib
from pathlib import Path
from typing import Any, ClassVar, Literal

_HERE = Path(__file__).parent

#: `{"arguments": {…}, "result": …}`: for these arguments, this is right.
Example = dict[str, Any]
ColumnType = Literal["integer", "float", "text", "date"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """A tool as the seeding registers it.

    `input_schema` is given where no signature can be read: a class, a script, a SQL statement; None means that the
    vault derives it. `description` likewise falls back to the docstring.
    """

    folder: ClassVar[str] = "healthy"

    name: str
    title: str
    examples: tuple[Example, ...] = ()
    input_schema: dict[str, Any] | None = None
    description: str = ""
    language: Literal["py", "sql"] = "py"

    @property
    def file(self) -> str:
        """File of its code, relative to the gallery."""
        return f"{self.folder}/{self.name}.{self.language}"

    @property
    def code(self) -> str:
        """Text of the code's file."""
        return (_HERE / self.file).read_text(encoding="utf-8")

    @property
    def type(self) -> Literal["python", "sql"]:
        """`sql` for a statement, `python` for everything else."""
        return "sql" if self.language == "sql" else "python"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lesson(Sample):
    """A tool with one classic mistake.

    `failing` are arguments that show the mistake: the tool then raises an exception of the type `ename`, or, where
    `ename` is None, returns `wrong_value` without complaint. `examples` say what is right, for `failing` and for more.
    `mistake` names the mistake for the teacher; `question` is what to ask a class.
    """

    folder: ClassVar[str] = "broken"

    mistake: str
    question: str
    failing: dict[str, Any]
    ename: str | None = None
    wrong_value: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleTable:
    """A table of sample data: columns by name, the first one its key, and a CSV file that fills it."""

    name: str
    columns: dict[str, ColumnType]

    @property
    def key(self) -> str:
        """Primary key: the first column."""
        return next(iter(self.columns))

    def rows(self) -> list[dict[str, str | None]]:
        """Read the file's rows as text; an empty cell is None."""
        with (_HERE / "data" / f"{self.name}.csv").open(encoding="utf-8", newline="") as file:
            return [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(file)]


def object_schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties, all required, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def lesson(name: str) -> Lesson:
    """Return the lesson of that name; raises `KeyError` if there is none."""
    return _BY_NAME[name]


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """Return a tool of the file as the fields of a `Sample`."""
    takes = row.pop("takes", None)
    schema = None if takes is None else object_schema(**takes)
    return {**row, "examples": tuple(row["examples"]), "input_schema": schema}


_FILE = tomllib.loads((_HERE / "gallery.toml").read_text(encoding="utf-8"))
LESSONS: tuple[Lesson, ...] = tuple(Lesson(**_read(row)) for row in _FILE["lessons"])
SAMPLES: tuple[Sample, ...] = tuple(Sample(**_read(row)) for row in _FILE["samples"])
SAMPLE_TABLES: tuple[SampleTable, ...] = tuple(SampleTable(**row) for row in _FILE["tables"])
_BY_NAME = {lesson.name: lesson for lesson in LESSONS}

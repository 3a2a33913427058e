"""Samples and lessons: their form, healthy tools, data."""

from __future__ import annotations

import csv
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


_DATA = _HERE / "data"

ColumnType = Literal["integer", "float", "text", "date"]

SAMPLES: tuple[Sample, ...] = (
    Sample(
        name="word_count",
        file="healthy/word_count.py",
        title="Count words",
        examples=(
            {"arguments": {"text": "to be or not to be"}, "result": 6},
            {"arguments": {"text": ""}, "result": 0},
        ),
    ),
    Sample(
        name="text_report",
        file="healthy/text_report.py",
        title="Report on a text (calls another tool)",
        examples=({"arguments": {"text": "to be"}, "result": {"words": 2, "characters": 5}},),
    ),
    Sample(
        name="compound_interest",
        file="healthy/compound_interest.py",
        title="Compound interest",
        examples=(
            {"arguments": {"amount": 1000, "percent": 5}, "result": 1050.0},
            {"arguments": {"amount": 1000, "percent": 5, "years": 10}, "result": 1628.89},
        ),
    ),
    Sample(
        name="describe_numbers",
        file="healthy/describe_numbers.py",
        title="Describe numbers (a class)",
        description="Describe a list of numbers: count, smallest, largest, mean and median.",
        input_schema=object_schema(numbers={"type": "array", "items": {"type": "number"}}),
        examples=(
            {
                "arguments": {"numbers": [3, 1, 8]},
                "result": {"count": 3, "smallest": 1, "largest": 8, "mean": 4.0, "median": 3},
            },
            {"arguments": {"numbers": []}, "result": {"count": 0}},
        ),
    ),
    Sample(
        name="slugify",
        file="healthy/slugify.py",
        title="Make a slug (a script)",
        description="Turn a title into the last part of a web address: lower case, words joined by dashes.",
        input_schema=object_schema(title={"type": "string"}),
        examples=({"arguments": {"title": "Hello, World!"}, "result": "hello-world"},),
    ),
    Sample(
        name="sales_by_region",
        file="healthy/sales_by_region.sql",
        title="Sales by region (SQL)",
        description="Units and revenue of each region since a day (YYYY-MM-DD), from the table sample_sales.",
        input_schema=object_schema(since={"type": "string", "format": "date"}),
        examples=(
            {
                "arguments": {"since": "2025-06-01"},
                "result": {
                    "columns": ["region", "manager", "units", "revenue"],
                    "rows": [["North", "Ada", 3, 164.25]],
                    "row_count": 1,
                    "truncated": False,
                },
            },
        ),
    ),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleTable:
    """A table of sample data: columns by name, the first one its key, and the CSV file that fills it."""

    name: str
    columns: dict[str, ColumnType]
    file: str

    @property
    def key(self) -> str:
        """Primary key: the first column."""
        return next(iter(self.columns))

    def rows(self) -> list[dict[str, str | None]]:
        """Read the file's rows as text; an empty cell is None."""
        with (_DATA / self.file).open(encoding="utf-8", newline="") as file:
            return [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(file)]


SAMPLE_TABLES: tuple[SampleTable, ...] = (
    SampleTable(
        name="sample_regions",
        columns={"region": "text", "manager": "text", "target_units": "integer"},
        file="sample_regions.csv",
    ),
    SampleTable(
        name="sample_sales",
        columns={
            "id": "integer",
            "region": "text",
            "product": "text",
            "units": "integer",
            "price": "float",
            "sold_on": "date",
            "returned_on": "date",
        },
        file="sample_sales.csv",
    ),
)

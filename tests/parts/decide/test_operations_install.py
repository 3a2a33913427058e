"""Built-in operations in a vault: added once, whole."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import pytest
from test_operations_tasks import in_process

from healkit import Healkit
from healkit.parts.decide.operations import GROUP, OPERATIONS, InstallReport, examples_of, install, operation

NAMES = tuple(one.name for one in OPERATIONS)


def test_each_public_function_of_the_tools_is_an_operation() -> None:
    files = (Path(__file__).parents[3] / "healkit" / "parts" / "decide" / "tools").glob("*.py")
    bodies = [node for file in files for node in ast.parse(file.read_text()).body]
    functions = [node.name for node in bodies if isinstance(node, ast.FunctionDef)]
    assert sorted(NAMES) == sorted(name for name in functions if not name.startswith("_"))


@pytest.mark.slow
def test_nearly_every_operation_has_an_example_and_does_what_it_says() -> None:
    without = {name for name in NAMES if not examples_of(name)}
    assert without == {"view_sql", "draw_chart", "export_parquet", "export_notebook"}
    for name in set(NAMES) - without:
        for example in examples_of(name):
            value = in_process(name)(**example["arguments"])
            if isinstance(value, pd.DataFrame):
                pd.testing.assert_frame_equal(value, example["result"])
            else:
                assert value == example["result"]


@pytest.mark.slow
def test_installing_twice_changes_nothing(healkit: Healkit) -> None:
    assert install(healkit) == InstallReport(added=NAMES)
    before = [(entry.tool_name, entry.revision, entry.code_hash) for entry in healkit.vault.list()]
    assert install(healkit) == InstallReport(kept=NAMES)
    assert [(entry.tool_name, entry.revision, entry.code_hash) for entry in healkit.vault.list()] == before
    entries = {entry.tool_name: entry for entry in healkit.vault.list()}
    assert {entry.group for entry in entries.values()} == {GROUP}
    assert all(entry.description for entry in entries.values())
    assert entries["filter_rows"].input_schema["properties"]["data"] == {
        "type": "object",
        "format": "dataframe",
    }
    assert entries["filter_rows"].input_schema["required"] == ["data", "column", "operator"]
    assert "between" in entries["filter_rows"].input_schema["properties"]["operator"]["enum"]


@pytest.mark.slow
def test_tools_of_the_user_are_never_overwritten(healkit: Healkit) -> None:
    healkit.vault.add("filter_rows", "def filter_rows():\n    return 'mine'\n")
    healkit.vault.add("gone", "def gone():\n    return 1\n")
    healkit.vault.rename("gone", "still_here")
    report = install(healkit)
    assert report.yours == ("filter_rows",)
    assert "filter_rows" not in report.added
    assert "not changed, because you have a tool of that name: filter_rows" in str(report)
    assert healkit.vault.get("filter_rows").code == "def filter_rows():\n    return 'mine'\n"
    # One that was patched or removed afterwards is the user's own from then on.
    healkit.vault.patch("sort_rows", "def sort_rows():\n    return 'patched'\n")
    healkit.vault.remove("top_rows")
    healkit.vault.rename("drop_nulls", "without_nulls")
    report = install(healkit)
    assert report.yours == ("filter_rows", "sort_rows", "top_rows", "drop_nulls")
    assert report.added == report.updated == ()
    assert healkit.vault.get("sort_rows").code == "def sort_rows():\n    return 'patched'\n"


@pytest.mark.slow
def test_an_operation_of_an_earlier_version_gets_the_code_of_this_one(healkit: Healkit) -> None:
    old = "def top_rows(data):\n    return data.head()\n"
    healkit.vault.add("top_rows", old, group=GROUP, author="seed")
    report = install(healkit)
    assert report.updated == ("top_rows",)
    assert healkit.vault.get("top_rows").code == operation("top_rows").code
    assert healkit.vault.get("top_rows", revision=1).code == old
    assert install(healkit).kept == NAMES

"""Examples of the operations, shown and checked by the vault."""

from __future__ import annotations

from typing import Any


def examples_of(name: str) -> list[dict[str, Any]]:
    """Return the examples of an operation, as `vault.add` takes them; some have none."""
    import pandas as pd

    sales = pd.DataFrame(
        {
            "city": ["Bern", "Basel", "Bern", None],
            "sold": [3, 1, 4, 2],
            "day": ["2024-01-31", "2024-02-01", "2024-03-01", None],
        }
    )
    managers = pd.DataFrame({"town": ["Bern", "Basel"], "manager": ["Ada", "Bo"]})
    wide = pd.DataFrame({"city": ["Bern", "Basel"], "2023": [1, 2], "2024": [3, 4]})
    rows: dict[str, tuple[dict[str, Any], Any]] = {
        "view_schema": (
            {"data": managers},
            pd.DataFrame({"column": ["town", "manager"], "type": [str(managers["town"].dtype)] * 2, "nulls": [0, 0],
                          "distinct": pd.array([2, 2], dtype="Int64")}),
        ),
        "resolve_entity": (
            {"data": sales, "column": "city", "entity": "BÂLE", "aliases": {"Basel": ["Bâle"]}},
            pd.DataFrame({"value": ["Basel"], "score": [98.0], "method": ["alias"], "rows": [1]}),
        ),
        "filter_rows": (
            {"data": wide, "column": "2024", "operator": ">=", "value": 4},
            pd.DataFrame({"city": ["Basel"], "2023": [2], "2024": [4]}),
        ),
        "select_columns": (
            {"data": wide, "columns": ["2024", "city"], "rename": {"2024": "sold"}},
            pd.DataFrame({"sold": [3, 4], "city": ["Bern", "Basel"]}),
        ),
        "join_views": (
            {"left": wide, "right": managers, "on": ["city"], "right_on": ["town"], "expect": "many to one"},
            wide.assign(manager=["Ada", "Bo"]),
        ),
        "group_rows": (
            {"data": sales, "by": ["city"], "aggregates": {"total": {"column": "sold", "function": "sum"}}},
            pd.DataFrame({"city": ["Bern", "Basel", None], "total": [7, 1, 2]}),
        ),
        "sort_rows": (
            {"data": wide, "by": ["2024"], "descending": True},
            pd.DataFrame({"city": ["Basel", "Bern"], "2023": [2, 1], "2024": [4, 3]}),
        ),
        "top_rows": (
            {"data": wide, "by": "2023", "n": 1},
            pd.DataFrame({"city": ["Basel"], "2023": [2], "2024": [4]}),
        ),
        "unpivot_columns": (
            {"data": wide, "keep": ["city"], "name": "year", "value": "sold"},
            pd.DataFrame({"city": ["Bern", "Basel"] * 2, "year": ["2023"] * 2 + ["2024"] * 2, "sold": [1, 2, 3, 4]}),
        ),
        "pivot_rows": (
            {"data": pd.DataFrame({"city": ["Bern", "Basel"] * 2, "year": [2023, 2023, 2024, 2024],
                                   "sold": [1, 2, 3, 4]}),
             "rows": ["city"], "columns": "year", "values": "sold"},
            wide,
        ),
        "date_parts": (
            {"data": sales, "column": "day", "parts": ["month"]},
            sales.assign(day_month=pd.array([1, 2, 3, None], dtype="Int64")),
        ),
        "drop_duplicates": (
            {"data": managers, "columns": ["town"]},
            managers,
        ),
        "drop_nulls": ({"data": sales, "columns": ["city"]}, sales.iloc[:3]),
        "fill_nulls": (
            {"data": sales, "column": "city", "value": "Chur"},
            sales.assign(city=["Bern", "Basel", "Bern", "Chur"]),
        ),
        "replace_values": (
            {"data": managers, "column": "manager", "replacements": {"Bo": "Bob"}},
            managers.assign(manager=["Ada", "Bob"]),
        ),
        "export_csv": ({"data": managers}, "town,manager\nBern,Ada\nBasel,Bo\n"),
        "export_report": (
            {"data": managers, "title": "Managers"},
            "# Managers\n\n2 rows, 2 columns.\n\n| town | manager |\n| --- | --- |\n| Bern | Ada |\n| Basel | Bo |\n",
        ),
    }  # fmt: skip
    if name not in rows:  # view_sql needs an extra, and files in bytes differ by version
        return []
    arguments, result = rows[name]
    return [{"arguments": arguments, "result": result}]

import re

import pandas as pd


def export_report(data: pd.DataFrame, title: str, text: str = "", rows: int = 20) -> str:
    """Write a view as a Markdown report: title, your text, how large the view is, and its first rows as a table.

    At most 30 columns are shown, and 200 characters of a cell.
    """
    table = _table(data)
    if rows < 0:
        raise ValueError("rows must be 0 or more.")
    shown = table.iloc[:rows, :30]
    parts = [f"# {_escaped(title)}", *([text] if text else [])]
    parts.append(f"{len(table):,} rows, {table.shape[1]:,} columns.")
    if shown.shape[1]:
        lines = [
            "| " + " | ".join(_escaped(label) for label in shown.columns) + " |",
            "|" + " --- |" * shown.shape[1],
        ]
        rows_shown = shown.itertuples(index=False, name=None)
        lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows_shown]
        parts.append("\n".join(lines))
    left = [f"{len(table) - len(shown):,} more rows"] if len(table) > len(shown) else []
    left += [f"{table.shape[1] - 30:,} more columns"] if table.shape[1] > 30 else []
    if left:
        parts.append(f"Not shown: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


def _cell(value):
    missing = pd.api.types.is_scalar(value) and pd.isna(value)
    return "" if missing else _escaped(value)


def _escaped(value):
    """Return a text on one line, with no meaning in Markdown or HTML."""
    text = " ".join(str(value).split())
    text = text if len(text) <= 200 else text[:199] + "…"
    return re.sub(r"([\\`*_\[\]<>|#~&$!])", r"\\\1", text)

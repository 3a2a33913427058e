"""Tools that tell about a view, or make a file of it."""

import base64
import io
import json
import re
import unicodedata
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
from pyarrow import parquet


def view_schema(data: pd.DataFrame) -> pd.DataFrame:
    """List the columns of a view: name, type, nulls, and number of distinct values.

    The number is null for a column whose values cannot be compared, such as lists.
    """
    table = _table(data)
    rows = []
    for at, label in enumerate(table.columns):
        values = table.iloc[:, at]
        try:
            distinct = int(values.nunique())
        except TypeError:
            distinct = None
        rows.append((str(label), str(values.dtype), int(values.isna().sum()), distinct))
    columns = ["column", "type", "nulls", "distinct"]
    schema = pd.DataFrame(rows, columns=columns)
    return schema.astype({"column": "str", "type": "str", "nulls": "int64", "distinct": "Int64"})


def resolve_entity(
    data: pd.DataFrame,
    column: str,
    entity: str,
    aliases: dict | None = None,
    limit: int = 5,
    min_score: float = 75,
) -> pd.DataFrame:
    """Find which values of a column an entity may be: the same text, an alias, or a near match.

    Gives the candidates, the best first: value, score (0 to 100), method and number of rows. No row means that the
    column has nothing like it. `aliases` are other names by name: {"Meta": ["Facebook", "FB"]}.
    """
    table = _table(data)
    values = table.iloc[:, _position(table, column)]
    if _kind(values) not in ("text", "nothing"):
        raise ValueError(
            f"An entity is searched in a column of text, but {_shown(column)} holds {_kind(values)} values."
        )
    if limit < 1:
        raise ValueError("limit must be at least 1.")
    counts = _plain(values).dropna().astype(object).value_counts(sort=False)
    wanted, others = _normal(entity), set()
    for name, names in (aliases or {}).items():
        group = {_normal(text) for text in [name, *([names] if isinstance(names, str) else names)]}
        if wanted in group:
            others |= group - {wanted}
    ratio, rows = _ratio(), []
    for value, count in counts.items():
        score, method = _judged(str(value), entity, wanted, others, ratio)
        if score >= min_score:
            rows.append((str(value), round(score, 1), method, int(count)))
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    found = pd.DataFrame(rows[:limit], columns=["value", "score", "method", "rows"])
    return found.astype({"value": "str", "score": "float64", "method": "str", "rows": "int64"})


def _judged(value, entity, wanted, others, ratio):
    """Return how like the entity a value is, and by which method."""
    if value == entity:
        return 100.0, "same"
    normal = _normal(value)
    if not normal or not wanted:
        return 0.0, "none"
    if normal == wanted:
        return 99.0, "normalised"
    if normal in others:
        return 98.0, "alias"
    initials = "".join(word[0] for word in normal.split())
    if len(initials) > 1 and initials == wanted.replace(" ", ""):
        return 90.0, "initials"
    as_sorted = ratio(" ".join(sorted(wanted.split())), " ".join(sorted(normal.split())))
    return min(97.0, max(ratio(wanted, normal), as_sorted)), "near"


def _normal(text):
    """Return a text without case, accents, punctuation and double spaces."""
    folded = unicodedata.normalize("NFKD", str(text)).casefold()
    letters = "".join(letter for letter in folded if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[\W_]+", " ", letters).split())


def _ratio():
    """Return how two texts are compared: by rapidfuzz where it can be imported, which is nine times faster here."""
    try:
        from rapidfuzz.fuzz import ratio
    except ImportError:
        from difflib import SequenceMatcher

        return lambda one, other: 100 * SequenceMatcher(None, one, other, autojunk=False).ratio()
    return ratio


def draw_chart(
    data: pd.DataFrame,
    kind: Literal["bar", "line", "scatter", "histogram"],
    x: str,
    y: list[str] | None = None,
    title: str = "",
    form: Literal["auto", "png", "vega-lite"] = "auto",
) -> Any:
    """Draw a chart: bytes of a PNG where matplotlib is installed, else the text of a Vega-Lite page.

    `y` names one or more columns of numbers; a histogram has none, and counts the numbers in `x`. A bar chart draws a
    row a bar, 200 at most, and no chart draws more than 20,000 rows: aggregate the view first.
    """
    table = _table(data)
    at_x, at_y = _position(table, x), _positions(table, y or [])
    if (kind == "histogram") == bool(at_y):
        raise ValueError(
            "A histogram takes no `y`." if at_y else f"A {kind} chart needs at least one column in `y`."
        )
    for at in [at_x] if kind == "histogram" else at_y:
        found = _kind(table.iloc[:, at])
        if found not in ("number", "truth", "nothing"):
            name = _shown(table.columns[at])
            raise ValueError(f"The column {name} holds {found} values; a chart needs numbers.")
    most = 200 if kind == "bar" else 20_000
    if len(table) > most:
        raise ValueError(
            f"The view has {len(table):,} rows, but a {kind} chart draws at most {most:,}. Aggregate it first."
        )
    if form != "vega-lite":
        try:
            return _png(table, kind, at_x, at_y, title)
        except ImportError:
            if form == "png":
                raise ImportError("A PNG needs matplotlib. Install it: pip install 'healkit[plot]'") from None
    return _vega_lite(table, kind, at_x, at_y, title)


def _png(table, kind, at_x, at_y, title):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    across = table.iloc[:, at_x]
    named = kind == "bar" or _kind(across) not in ("number", "moment", "span")
    if kind == "histogram":
        axes.hist(across.dropna().astype(float), bins=min(30, max(1, across.nunique())))
        axes.set_ylabel("rows")
    else:
        places = range(len(table)) if named else across
        for number, at in enumerate(at_y):
            values = table.iloc[:, at].astype("float64")
            label = str(table.columns[at])[:80].lstrip("_") or "value"
            if kind == "bar":
                width = 0.8 / len(at_y)
                axes.bar(
                    [place + (number - (len(at_y) - 1) / 2) * width for place in places],
                    values,
                    width,
                    label=label,
                )
            elif kind == "line":
                axes.plot(places, values, label=label)
            else:
                axes.scatter(places, values, s=12, label=label)
        if named:
            ticks = range(0, len(table), max(1, len(table) // 25))
            labels = [str(across.iloc[at])[:30] for at in ticks]
            axes.set_xticks(list(ticks), labels, rotation=45 if len(labels) > 6 else 0, parse_math=False)
        for text in axes.legend().get_texts() if len(at_y) > 1 else ():
            text.set_parse_math(False)
        if len(at_y) == 1:
            axes.set_ylabel(str(table.columns[at_y[0]])[:80], parse_math=False)
    axes.set_xlabel(str(table.columns[at_x])[:80], parse_math=False)
    axes.set_title(title[:200], parse_math=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100, metadata={"Software": None})
    return buffer.getvalue()


def _vega_lite(table, kind, at_x, at_y, title):
    """Return the chart as Vega-Lite's JSON; columns are called x, y0, y1, … there, with their names as titles."""
    kinds = {"number": "quantitative", "moment": "temporal", "day": "temporal"}
    wanted = table.iloc[:, [at_x, *at_y]].set_axis(
        ["x", *(f"y{number}" for number in range(len(at_y)))], axis=1
    )
    axis = "nominal" if kind == "bar" else kinds.get(_kind(table.iloc[:, at_x]), "nominal")
    across = {"field": "x", "title": str(table.columns[at_x]), "type": axis, "sort": None}
    if kind == "histogram":
        layers = [{"mark": "bar", "encoding": {"x": {**across, "bin": True}, "y": {"aggregate": "count"}}}]
    else:
        mark = {"bar": "bar", "line": "line", "scatter": "point"}[kind]
        layers = [
            {
                "mark": mark,
                "encoding": {
                    "x": across,
                    "y": {"field": f"y{number}", "title": str(table.columns[at]), "type": "quantitative"},
                },
            }
            for number, at in enumerate(at_y)
        ]
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": title,
        "data": {"values": json.loads(wanted.to_json(orient="records", date_format="iso"))},
        "layer": layers,
    }
    return json.dumps(chart, ensure_ascii=False)


def export_csv(data: pd.DataFrame, separator: str = ",") -> str:
    """Write a view as the text of a CSV file: the column names, then one line per row; a null is an empty cell."""
    table = _table(data)
    _require_new(table.columns, "the file")
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError("The separator must be one character, but not a quotation mark or a line break.")
    return table.to_csv(index=False, sep=separator, lineterminator="\n")


def export_parquet(data: pd.DataFrame) -> bytes:
    """Write a view as the bytes of a Parquet file, which keeps every column's type."""
    return _parquet(_table(data))


def _parquet(table):
    """Return the bytes of the file."""
    _require_new(table.columns, "the file")
    columns = []
    for at, label in enumerate(table.columns):
        values = table.iloc[:, at]
        try:
            columns.append(pa.array(values, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"Parquet cannot hold the column {_shown(label)}: it holds {_kind(values)} values."
            ) from None
    file = io.BytesIO()
    named = pa.table(columns, names=[str(label) for label in table.columns])
    parquet.write_table(named, file)
    return file.getvalue()


def export_notebook(data: pd.DataFrame, title: str, text: str = "") -> str:
    """Write a view as the text of a notebook, which holds the data itself and shows it; 5 MB at most."""
    table = _table(data)
    _require_new(table.columns, "the notebook")
    file = io.BytesIO()
    table.set_axis([str(label) for label in table.columns], axis=1).to_parquet(file)
    if len(file.getvalue()) > 5_000_000:
        raise ValueError("The data is larger than 5 MB. Write it with export_parquet, or aggregate it first.")
    packed = base64.b64encode(file.getvalue()).decode()
    load = f"import base64\nimport io\n\nimport pandas as pd\n\npacked = (\n{_lines(packed)})\n"
    load += "data = pd.read_parquet(io.BytesIO(base64.b64decode(packed)))"
    cells = [("markdown", f"# {title}\n\n{text}".rstrip()), ("code", load), ("code", "data")]
    cells.append(("code", 'data.describe(include="all")'))
    notebook = {
        "cells": [_cell(number, kind, source) for number, (kind, source) in enumerate(cells)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _lines(packed):
    return "".join(f'    "{packed[at : at + 100]}"\n' for at in range(0, len(packed), 100))


def _cell(number, kind, source):
    cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


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
        lines += ["| " + " | ".join(_table_cell(value) for value in row) + " |" for row in rows_shown]
        parts.append("\n".join(lines))
    left = [f"{len(table) - len(shown):,} more rows"] if len(table) > len(shown) else []
    left += [f"{table.shape[1] - 30:,} more columns"] if table.shape[1] > 30 else []
    if left:
        parts.append(f"Not shown: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


def _table_cell(value):
    missing = pd.api.types.is_scalar(value) and pd.isna(value)
    return "" if missing else _escaped(value)


def _escaped(value):
    """Return a text on one line, with no meaning in Markdown or HTML."""
    text = " ".join(str(value).split())
    text = text if len(text) <= 200 else text[:199] + "…"
    return re.sub(r"([\\`*_\[\]<>|#~&$!])", r"\\\1", text)

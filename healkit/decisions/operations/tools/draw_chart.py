import io
import json
from typing import Any, Literal

import pandas as pd


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
            "A histogram takes no `y`." if at_y else f"A {kind} chart needs a column or more in `y`."
        )
    for at in [at_x] if kind == "histogram" else at_y:
        found = _kind(table.iloc[:, at])
        if found not in ("number", "truth", "nothing"):
            name = _shown(table.columns[at])
            raise ValueError(f"The column {name} holds {found} values; a chart needs numbers.")
    most = 200 if kind == "bar" else 20_000
    if len(table) > most:
        raise ValueError(
            f"The view has {len(table):,} rows, and a {kind} chart draws {most:,} at most. Aggregate it first."
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

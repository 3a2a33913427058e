"""Tasks on public data: steps, and the right result.

The steps are those that a chooser would choose.

A task is a dict: `name`; `data`, the names of its views at the start, each a file in `data/`; `steps`, choices as the
decision loop takes them, the last of which names the final view; `expect`, which computes the right final view from the
same frames with pandas alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

DATA = Path(__file__).parent / "data"
Frames = dict[str, pd.DataFrame]


def load(names: list[str]) -> Frames:
    """Read the task's views."""
    return {name: pd.read_csv(DATA / f"{name}.csv") for name in names}


def op(view: str, tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "execute_data_op", "tool": tool, "params": params, "viewName": view}


def look(tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "gather_info", "tool": tool, "params": params}


def out(tool: str, **params: Any) -> dict[str, Any]:
    return {"type": "execute_output", "tool": tool, "params": params}


def agg(column: str, function: str) -> dict[str, str]:
    return {"column": column, "function": function}


TASKS: list[dict[str, Any]] = []


def task(name: str, data: str, *steps: dict[str, Any]) -> Callable[[Callable[..., pd.DataFrame]], None]:
    """Add a task; the function decorated computes what is right."""
    names = data.split()
    final = [step for step in steps if step["type"] == "execute_data_op"][-1]["viewName"]
    every = [*steps, {"type": "finalize", "finalViewName": final}]

    def add(expect: Callable[..., pd.DataFrame]) -> None:
        TASKS.append({"name": name, "data": names, "steps": every, "expect": lambda frames: expect(**frames)})

    return add


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reset_index(drop=True)


@task(
    "mean_of_each_year", "co2",
    op("years", "date_parts", data="co2", column="date", parts=["year"], format="%Y%m%d"),
    op("out", "group_rows", data="years", by=["date_year"], aggregates={"mean": agg("co2", "mean"), "weeks": agg("co2", "count")}),
)  # fmt: skip
def _(co2):
    groups = co2.co2.groupby(co2.date // 10_000)
    return pd.DataFrame(
        {"date_year": list(groups.groups), "mean": groups.mean().values, "weeks": groups.count().values}
    )


@task(
    "best_year_of_each_firm",
    "grunfeld",
    op("best", "top_rows", data="grunfeld", by="invest", n=1, within=["firm"]),
    op("out", "sort_rows", data="best", by=["firm"]),
)
def _(grunfeld):
    return numbered(grunfeld.loc[grunfeld.groupby("firm").invest.idxmax()])


@task(
    "firms_across_years",
    "grunfeld",
    op("few", "filter_rows", data="grunfeld", column="year", operator="<", value=1938),
    op("out", "pivot_rows", data="few", rows=["firm"], columns="year", values="invest"),
)
def _(grunfeld):
    few = grunfeld[grunfeld.year < 1938]
    wide = few.pivot(index="firm", columns="year", values="invest").loc[few.firm.unique()]
    return wide.rename(columns=str).rename_axis(columns=None).reset_index()


@task(
    "rates_as_rows", "statecrime",
    op("out", "unpivot_columns", data="statecrime", keep=["state"], columns=["violent", "murder"], name="kind", value="rate"),
)  # fmt: skip
def _(statecrime):
    return statecrime.melt(
        id_vars="state", value_vars=["violent", "murder"], var_name="kind", value_name="rate"
    )


@task(
    "states_in_order", "statecrime",
    op("sorted", "sort_rows", data="statecrime", by=["poverty", "state"], descending=[True, False]),
    op("out", "select_columns", data="sorted", columns=["state", "poverty"]),
)  # fmt: skip
def _(statecrime):
    return numbered(
        statecrime.sort_values("state").sort_values("poverty", ascending=False, kind="stable")[
            ["state", "poverty"]
        ]
    )


@task("what_the_columns_are", "co2", op("out", "view_schema", data="co2"))
def _(co2):
    return pd.DataFrame({
        "column": ["date", "co2"], "type": ["int64", "float64"], "nulls": [0, int(co2.co2.isna().sum())],
        "distinct": pd.array([len(set(co2.date)), len(set(co2.co2.dropna()))], dtype="Int64"),
    })  # fmt: skip


@task(
    "chart_of_the_air", "co2",
    op("air", "date_parts", data="co2", column="date", parts=["date"], format="%Y%m%d"),
    op("out", "select_columns", data="air", columns=["date_date", "co2"], rename={"date_date": "day"}),
    out("draw_chart", data="out", kind="line", x="day", y=["co2"], title="CO2 at Mauna Loa ($ppm$)"),
    out("export_parquet", data="out"),
)  # fmt: skip
def _(co2):
    return pd.DataFrame({"day": pd.to_datetime(co2.date.astype(str), format="%Y%m%d"), "co2": co2.co2})


@task(
    "chart_of_states", "statecrime",
    op("out", "select_columns", data="statecrime", columns=["state", "poverty", "murder"]),
    out("draw_chart", data="out", kind="scatter", x="poverty", y=["murder"], form="vega-lite"),
    out("export_report", data="out", title="Poverty and murder", rows=3),
)  # fmt: skip
def _(statecrime):
    return statecrime.loc[:, ["state", "poverty", "murder"]]


@task(
    "histogram_of_measurements", "co2",
    op("out", "drop_nulls", data="co2", columns=["co2"]),
    out("draw_chart", data="out", kind="histogram", x="co2"),
    out("export_csv", data="out"),
    out("export_notebook", data="out", title="Measurements"),
)  # fmt: skip
def _(co2):
    return numbered(co2.dropna())


@task(
    "steel_makers", "grunfeld",
    op("steel", "filter_rows", data="grunfeld", column="firm", operator="contains", value="Steel"),
    op("out", "select_columns", data="steel", columns=["firm", "year", "invest"], rename={"invest": "investment"}),
)  # fmt: skip
def _(grunfeld):
    two = grunfeld[grunfeld.firm.isin(["US Steel", "American Steel"])]
    return numbered(pd.DataFrame({"firm": two.firm, "year": two.year, "investment": two.invest}))


@task(
    "small_states_by_sql", "statecrime",
    op("out", "view_sql", query="SELECT state, murder FROM s WHERE murder < 1.5 AND state NOT LIKE 'N%' ORDER BY state", s="statecrime"),
)  # fmt: skip
def _(statecrime):
    few = statecrime[(statecrime.murder < 1.5) & (statecrime.state.str[0] != "N")]
    return numbered(few[["state", "murder"]].sort_values("state"))


@task(
    "share_of_the_year", "grunfeld",
    op("years", "group_rows", data="grunfeld", by=["year"], aggregates={"all_firms": agg("invest", "sum")}),
    op("out", "join_views", left="grunfeld", right="years", on=["year"], expect="many to one"),
)  # fmt: skip
def _(grunfeld):
    return grunfeld.assign(all_firms=grunfeld.groupby("year").invest.transform("sum"))


@task(
    "violent_but_not_poor", "statecrime",
    op("violent", "top_rows", data="statecrime", by="violent", n=15),
    op("poor", "top_rows", data="statecrime", by="poverty", n=15),
    op("out", "join_views", left="violent", right="poor", on=["state"], how="anti"),
)  # fmt: skip
def _(statecrime):
    violent = statecrime.nlargest(15, "violent")
    return numbered(violent[~violent.state.isin(statecrime.nlargest(15, "poverty").state)])


@task(
    "years_that_firms_lack", "co2 grunfeld",
    op("air", "date_parts", data="co2", column="date", parts=["year"], format="%Y%m%d"),
    op("years", "group_rows", data="air", by=["date_year"], aggregates={"weeks": {"function": "rows"}}),
    op("firms", "group_rows", data="grunfeld", by=["year"], aggregates={"firms": {"function": "rows"}}),
    op("out", "join_views", left="firms", right="years", on=["year"], right_on=["date_year"], how="outer"),
)  # fmt: skip
def _(co2, grunfeld):
    weeks = (co2.date // 10_000).value_counts().sort_index()
    firms = grunfeld.year.value_counts().sort_index()
    years = sorted({*weeks.index, *firms.index})
    return pd.DataFrame({
        "year": pd.array(years, dtype="Int64"), "firms": pd.array([firms.get(y) for y in years], dtype="Int64"),
        "weeks": pd.array([weeks.get(y) for y in years], dtype="Int64"),
    })  # fmt: skip


@task(
    "short_name_of_a_firm", "grunfeld",
    look("resolve_entity", data="grunfeld", column="firm", entity="GM"),
    op("out", "filter_rows", data="grunfeld", column="firm", operator="==", value="General Motors"),
)  # fmt: skip
def _(grunfeld):
    return numbered(grunfeld[grunfeld.firm == "General Motors"])


@task(
    "misspelt_state",
    "statecrime",
    op("out", "resolve_entity", data="statecrime", column="state", entity="Massachusets", limit=1),
)
def _(statecrime):
    score = round(100 * 2 * 12 / (12 + 13), 1)  # all twelve letters are among the thirteen
    return pd.DataFrame({"value": ["Massachusetts"], "score": [score], "method": ["near"], "rows": [1]})


@task(
    "firms_renamed", "grunfeld",
    op("named", "replace_values", data="grunfeld", column="firm", replacements={"US Steel": "United States Steel", "Westinghouse": "Westinghouse Electric"}),
    op("out", "drop_duplicates", data="named", columns=["firm"]),
)  # fmt: skip
def _(grunfeld):
    named = grunfeld.assign(
        firm=grunfeld.firm.replace(
            {"US Steel": "United States Steel", "Westinghouse": "Westinghouse Electric"}
        )
    )
    return numbered(named[~named.firm.duplicated()])


@task("gaps_closed", "co2", op("out", "fill_nulls", data="co2", column="co2", method="previous"))
def _(co2):
    return co2.ffill()

"""Tasks that aggregate, and that draw a chart."""

from __future__ import annotations

import pandas as pd

from decide_tasks.building import agg, numbered, op, out, task


@task(
    "all_in_one_row",
    "statecrime",
    op(
        "out",
        "group_rows",
        data="statecrime",
        by=[],
        aggregates={
            "states": agg("state", "distinct"),
            "worst": agg("murder", "max"),
            "middle": agg("murder", "median"),
        },
    ),
)
def _(statecrime):
    return pd.DataFrame(
        {"states": [51], "worst": [statecrime.murder.max()], "middle": [statecrime.murder.median()]}
    )


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
    "five_richest_firms", "grunfeld",
    op("firms", "group_rows", data="grunfeld", by=["firm"], aggregates={"value": agg("value", "mean")}),
    op("out", "top_rows", data="firms", by="value", n=5),
)  # fmt: skip
def _(grunfeld):
    means = grunfeld.groupby("firm").value.mean().sort_values(ascending=False).head(5)
    return means.reset_index()


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
    "spread_by_sql",
    "grunfeld",
    op(
        "out",
        "view_sql",
        query="SELECT year, max(invest) - min(invest) AS spread, count(*) AS n, sum(year) AS s FROM g GROUP BY year ORDER BY year",
        g="grunfeld",
    ),
)
def _(grunfeld):
    groups = grunfeld.groupby("year")
    spread = groups.invest.max() - groups.invest.min()
    return pd.DataFrame(
        {
            "year": spread.index,
            "spread": spread.values,
            "n": groups.size().values,
            "s": groups.year.sum().values,
        }
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

"""Tasks that join."""

from __future__ import annotations

import pandas as pd

from decide_tasks.building import agg, numbered, op, task


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
    "join_by_sql", "grunfeld",
    op("totals", "group_rows", data="grunfeld", by=["firm"], aggregates={"most": agg("value", "max")}),
    op("out", "view_sql", query="SELECT g.firm, g.year FROM g JOIN t ON g.firm = t.firm AND g.value = t.most ORDER BY g.firm", g="grunfeld", t="totals"),
)  # fmt: skip
def _(grunfeld):
    return numbered(
        grunfeld.loc[grunfeld.groupby("firm").value.idxmax(), ["firm", "year"]].sort_values("firm")
    )

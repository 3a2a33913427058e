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
    "before_and_after_the_war", "grunfeld",
    op("before", "filter_rows", data="grunfeld", column="year", operator="==", value=1938),
    op("after", "filter_rows", data="grunfeld", column="year", operator="==", value=1948),
    op("joined", "join_views", left="before", right="after", on=["firm"], expect="one to one", suffix="_1948"),
    op("out", "select_columns", data="joined", columns=["firm", "invest", "invest_1948"]),
)  # fmt: skip
def _(grunfeld):
    by_firm = grunfeld.pivot(index="firm", columns="year", values="invest")
    order = grunfeld.firm.unique()
    return pd.DataFrame(
        {
            "firm": order,
            "invest": by_firm.loc[order, 1938].values,
            "invest_1948": by_firm.loc[order, 1948].values,
        }
    )


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
    "violent_and_poor", "statecrime",
    op("violent", "top_rows", data="statecrime", by="violent", n=15),
    op("poor", "top_rows", data="statecrime", by="poverty", n=15),
    op("out", "join_views", left="violent", right="poor", on=["state"], how="semi"),
)  # fmt: skip
def _(statecrime):
    violent = statecrime.nlargest(15, "violent")
    return numbered(violent[violent.state.isin(statecrime.nlargest(15, "poverty").state)])


@task(
    "air_beside_investment", "co2 grunfeld",
    op("air", "date_parts", data="co2", column="date", parts=["year"], format="%Y%m%d"),
    op("years", "group_rows", data="air", by=["date_year"], aggregates={"co2": agg("co2", "mean")}),
    op("firms", "filter_rows", data="grunfeld", column="firm", operator="==", value="IBM"),
    op("out", "join_views", left="years", right="firms", on=["date_year"], right_on=["year"], how="inner"),
)  # fmt: skip
def _(co2, grunfeld):
    # The firms end in 1954, the air begins in 1958: the right answer has no row.
    return pd.DataFrame({"date_year": pd.Series(dtype="int64"), "co2": pd.Series(dtype="float64")}).join(
        grunfeld.drop(columns="year").iloc[:0]
    )


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


@task(
    "all_states_with_what_is_known", "statecrime",
    op("known", "filter_rows", data="statecrime", column="urban", operator="<", value=50),
    op("few", "select_columns", data="known", columns=["state", "urban"], rename={"urban": "rural_share"}),
    op("names", "select_columns", data="statecrime", columns=["state"]),
    op("out", "join_views", left="names", right="few", on=["state"], how="left"),
)  # fmt: skip
def _(statecrime):
    return pd.DataFrame(
        {"state": statecrime.state, "rural_share": statecrime.urban.where(statecrime.urban < 50)}
    )

"""Tasks that filter."""

from __future__ import annotations

import pandas as pd

from decide_tasks.building import numbered, op, task


@task(
    "weeks_without_a_measurement",
    "co2",
    op("out", "filter_rows", data="co2", column="co2", operator="is null"),
)
def _(co2):
    return numbered(co2[co2.co2.isnull()])


@task(
    "states_called_new",
    "statecrime",
    op("out", "filter_rows", data="statecrime", column="state", operator="starts with", value="New "),
)
def _(statecrime):
    return numbered(
        statecrime[statecrime.state.isin(["New Hampshire", "New Jersey", "New Mexico", "New York"])]
    )


@task(
    "three_firms",
    "grunfeld",
    op(
        "out",
        "filter_rows",
        data="grunfeld",
        column="firm",
        operator="in",
        value=["IBM", "Goodyear", "Chrysler"],
    ),
)
def _(grunfeld):
    return numbered(grunfeld.query("firm in ('IBM', 'Goodyear', 'Chrysler')"))


@task(
    "poor_and_urban", "statecrime",
    op("poor", "filter_rows", data="statecrime", column="poverty", operator=">", value=15),
    op("out", "filter_rows", data="poor", column="urban", operator=">=", value=70.5),
)  # fmt: skip
def _(statecrime):
    return numbered(statecrime[(statecrime.poverty > 15) & (statecrime.urban >= 70.5)])


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

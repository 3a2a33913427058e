"""Tasks that correct values, or a name written otherwise."""

from __future__ import annotations

import pandas as pd

from decide_tasks.building import look, numbered, op, task


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
    "capital_letters",
    "statecrime",
    op("out", "resolve_entity", data="statecrime", column="state", entity="NEW-YORK", limit=1),
)
def _(statecrime):
    return pd.DataFrame({"value": ["New York"], "score": [99.0], "method": ["normalised"], "rows": [1]})


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


@task(
    "a_row_that_stands_twice", "statecrime",
    op("twice", "view_sql", query="SELECT * FROM s UNION ALL SELECT * FROM s", s="statecrime"),
    op("once", "drop_duplicates", data="twice"),
    op("out", "sort_rows", data="once", by=["state"]),
)  # fmt: skip
def _(statecrime):
    return numbered(statecrime.sort_values("state"))


@task("gaps_with_the_mean", "co2", op("out", "fill_nulls", data="co2", column="co2", method="mean"))
def _(co2):
    return co2.assign(co2=co2.co2.where(co2.co2.notna(), co2.co2.sum() / co2.co2.count()))

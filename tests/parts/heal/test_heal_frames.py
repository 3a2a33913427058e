"""Healing of tools on frames and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from healing_samples import PASSED, RAISED, Idea, verdict_on

from healkit import Healkit
from healkit.core.contracts.patches import Check, CheckResult
from healkit.core.contracts.vault import VaultEntry
from healkit.core.crossing import values
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.case import checks_of, gather
from healkit.parts.heal.inputs import accepted, frame_variants
from healkit.parts.heal.questions import Answer, Choice, Question
from healkit.parts.heal.records import Attempt, Patch
from healkit.parts.heal.render import meaning, question_text
from healkit.parts.heal.verdicts import judged_attempt

SALES = pd.DataFrame({"city": ["Bern", "Basel", "Bern"], "units": [1, 2, 3], "sales": [1.5, 2.0, 3.0]})
RIGHT = pd.DataFrame({"city": ["Basel", "Bern"], "sales": [2.0, 4.5]})
WRONG_COLUMN = """
import pandas as pd


def by_city(df: pd.DataFrame):
    return df.groupby("city", as_index=False)["units"].sum()
"""


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_an_example_with_a_frame_is_a_check_and_the_search_meets_it(healkit: Healkit) -> None:
    """DATA-5: the wrong column is replaced, kept, and the tool gives the right frame."""
    healkit.vault.add(
        "by_city",
        WRONG_COLUMN,
        examples=[
            {"arguments": {"df": SALES}, "result": RIGHT},
            {"arguments": {"df": SALES[:1]}, "result": pd.DataFrame({"city": ["Bern"], "sales": [1.5]})},
        ],
    )
    report = healkit.heal("by_city", advisors=["search"], auto=True, budget_s=60)
    assert report.outcome == "kept", report
    pd.testing.assert_frame_equal(healkit.execute_tool("by_city", arguments={"df": SALES}), RIGHT)


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_wrong_column_is_corrected_wherever_it_is_used(healkit: Healkit) -> None:
    """DATA-5: one column, misnamed in two places; the rules corrected the first alone, which did not help."""
    code = WRONG_COLUMN.replace('["units"].sum()', '["sale"].sum().sort_values("sale", ignore_index=True)')
    healkit.vault.add("by_city", code, examples=[{"arguments": {"df": SALES}, "result": RIGHT}])
    assert healkit.execute("by_city", arguments={"df": SALES}).failure is not None
    report = healkit.heal("by_city", advisors=["rules"], auto=True)
    assert report.outcome == "kept", report
    assert report.best.patch.reason == "The column 'sale' does not exist; 'sales' does."
    assert report.best.patch.code == code.replace('"sale"', '"sales"')


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_recorded_run_with_a_frame_must_stay_equal(healkit: Healkit) -> None:
    """DATA-5: runs on frames that are kept are checks; one with a very large frame is none."""
    code = "def total(df, factor):\n    return df['units'].sum() / factor\n"
    kept, large = pd.DataFrame({"units": range(1000)}), pd.DataFrame({"units": range(200_000)})
    healkit.vault.add("total", code)
    healkit.execute_tool("total", arguments={"df": large, "factor": 1})
    healkit.execute_tool("total", arguments={"df": kept, "factor": 1})
    healkit.execute_tool("total", arguments={"df": SALES, "factor": 2})
    assert healkit.execute("total", arguments={"df": SALES[["city"]], "factor": 2}).failure is not None
    case, _, _ = gather(healkit.vault, healkit.log, "total", "default")
    assert [check.origin for check in case.checks] == ["failing", "passing", "passing"]
    _, small, kept_check = case.checks
    assert values.equal(values.remade(small.arguments), {"df": SALES, "factor": 2})
    assert small.expected == 3.0
    assert values.equal(values.remade(kept_check.arguments), {"df": kept, "factor": 1})
    assert kept_check.expected == 499500.0


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_failure_on_a_long_frame_is_checked_on_a_sample_of_its_rows(healkit: Healkit) -> None:
    """DATA-5: a frame of more than 100,000 items cannot be a check, so the checks had no failure."""
    healkit.vault.add("total", "def total(df):\n    return float(df['unit'].sum())\n")
    large = pd.DataFrame({"units": range(200_000), "city": "Bern"})
    assert healkit.execute("total", arguments={"df": large}).failure is not None
    report = healkit.heal("total", auto=False)
    assert [(check.origin, check.sampled) for check in report.checks] == [
        ("failing", "1,000 of 200,000 rows")
    ]
    rows = values.remade(report.checks[0].arguments["df"])
    assert len(rows) == 1000
    assert rows["units"].iloc[[0, -1]].tolist() == [0, 199_999]
    assert report.best is not None
    assert report.best.verdict == "unproven"
    assert report.best.patch.doubt == "Tried on 1,000 of 200,000 rows."
    assert "df['units'].sum()" in report.best.patch.code


@pytest.mark.slow
@pytest.mark.requirement("DATA-5", "LOG-10")
def test_a_patch_that_is_kept_runs_on_all_rows_and_is_named_in_the_lists(healkit: Healkit) -> None:
    """D5: it ran on 1,000 of 200,000 rows, and stood in the log as an ordinary run with another result."""
    healkit.vault.add("total", "def total(df):\n    return int(df['unit'].sum())\n")
    large = pd.DataFrame({"units": range(200_000), "city": "Bern"})
    healkit.execute("total", arguments={"df": large})
    assert healkit.heal("total", confirm=lambda _: True).outcome == "kept"
    checked, first = healkit.executions()
    assert (checked.origin, checked.result_summary) == ("heal", str(sum(range(200_000))))
    assert checked.arguments == first.arguments
    shown = healkit.executions().to_text()
    assert "total v2 (heal)" in shown
    assert "total v1 (" not in shown
    assert [row["healing"] for row in healkit.browse().operations["page"]({})["rows"]] == [True, False]


@pytest.mark.slow
@pytest.mark.requirement("DATA-5", "HEAL-2")
def test_a_sample_that_does_not_fail_does_not_make_a_tool_healthy(healkit: Healkit) -> None:
    """DATA-5: with a passing run on record and the failing row not in the sample, nothing is claimed."""
    healkit.vault.add("total", "def total(df):\n    return sum(int(text) for text in df['units'])\n")
    healkit.execute_tool("total", arguments={"df": pd.DataFrame({"units": ["1", "2"]})})
    large = pd.DataFrame({"units": ["1"] * 200_000})
    large.loc[7, "units"] = "none"
    assert healkit.execute("total", arguments={"df": large}).failure is not None
    patched = "def total(df):\n    return sum(int(text) for text in df['units'] if text.isdigit())\n"
    report = healkit.heal("total", advisors=[Idea(patched)], auto=False)
    assert report.outcome != "healthy", report
    assert [check.origin for check in report.checks] == ["passing"]
    (attempt,) = report.attempts
    assert (attempt.verdict, attempt.patch.doubt) == ("unproven", "The failing call was not tried.")
    assert "The failing frame is too long to try, and a sample of its rows does not fail." in report.notes


@pytest.mark.slow
@pytest.mark.requirement("DATA-5")
def test_a_question_shows_a_small_table_and_its_answer_becomes_an_example(healkit: Healkit) -> None:
    """DATA-5: patches differ on a frame of fewer rows and columns than the recorded one."""
    code = "def largest(df):\n    return df['units'].min()\n"
    frame = pd.DataFrame({"units": [3, 5, 5], "other": [1.0, 2.0, 3.0], "city": ["a", "b", "c"]})
    healkit.vault.add("largest", code, examples=[{"arguments": {"df": frame}, "result": 5}])
    asked: list[Any] = []

    def ask(question: Any) -> Answer:
        asked.append(question)
        return Answer(int(question.arguments["df"]["units"].max()))

    report = healkit.heal("largest", advisors=["search"], auto=True, ask=ask, budget_s=60)
    assert asked, report
    shown = asked[0].arguments["df"]
    assert isinstance(shown, pd.DataFrame)
    assert list(shown.columns) == ["units"]
    assert len(shown) <= len(frame)
    assert "DataFrame({'units': [" in asked[0].call
    assert report.best is not None
    assert ".max()" in report.best.patch.code
    if report.outcome == "kept":
        assert len(healkit.vault.get("largest").examples) == 1 + len(asked)


@pytest.mark.requirement("DATA-5")
def test_a_question_on_a_frame_is_written_as_tables() -> None:
    """DATA-5: frames of the input and of the choices are tables; other values stay in the line."""
    frame = pd.DataFrame({"city": ["Bern", "Basel"], "units": [1, 20]})
    choices = (Choice(frame[1:], patches=2), Choice(3), Choice(None, "KeyError"), Choice(frame[:0]))
    question = Question("pick v2", {"df": frame, "n": 1}, choices, 1)
    text = question_text(question.call, (choice.lines for choice in choices), question.tables)
    assert text.splitlines() == [
        "The plausible patches give different results. What is the right result of pick(df=DataFrame({'city': ['Bern', 'Basel'], 'units': [1, 20]}), n=1) ?",
        "df:",
        "        city  units",
        "    0   Bern      1",
        "    1  Basel     20",
        "  1)",
        "         city  units",
        "     1  Basel     20",
        "  2) 3",
        "  3) raises KeyError",
        "  4) no rows; columns city, units",
    ]


def test_examples_with_frames_are_stored_exactly_and_listed_readably(healkit: Healkit) -> None:
    entry = healkit.vault.add(
        "by_city", WRONG_COLUMN, examples=[{"arguments": {"df": SALES}, "result": RIGHT}]
    )
    (check,) = checks_of(entry)
    assert values.equal(values.remade(check.arguments), {"df": SALES})
    assert values.equal(values.remade(check.expected), RIGHT)
    again = healkit.vault.add("other", WRONG_COLUMN.replace("by_city", "other"), examples=entry.examples)
    assert again.examples == entry.examples
    assert (
        values.with_texts(entry.examples[0])["result"]
        == "DataFrame({'city': ['Basel', 'Bern'], 'sales': [2.0, 4.5]})"
    )
    assert accepted(entry, check.arguments)
    assert not accepted(entry, {"df": 3})


def test_variants_of_narrow_dtypes_hold_what_they_can() -> None:
    narrow = pd.DataFrame(
        {
            "byte": np.array([127, 1], dtype="int8"),
            "count": np.array([0, 5], dtype="uint16"),
            "kind": pd.Categorical(["a", "b"]),
            "day": pd.to_datetime(["2024-01-01", "2024-01-02"]),
            "sure": [True, False],
            "maybe": pd.array([1, None], dtype="Int64"),
        }
    )
    made = [values.remade(one) for one in frame_variants(values.kept(narrow))]
    assert len(made) > 15
    assert all((one.dtypes == narrow.dtypes).all() for one in made)


@pytest.mark.parametrize("answer", [RIGHT, RIGHT["sales"].rename(None), np.array([2.0, 4.5])])
def test_an_answer_copied_as_a_table_only_hides_the_error(answer: Any) -> None:
    check = Check(
        origin="declared", arguments={"df": values.kept(SALES)}, known=True, expected=values.kept(answer)
    )
    written = answer.to_dict("list") if isinstance(answer, pd.DataFrame) else answer.tolist()
    code = f"import pandas as pd\ndef f(df):\n    return pd.{type(answer).__name__}({written!r})\n"
    for before, after, verdict in (
        (WRONG_COLUMN, code.replace("ndarray", "array"), "silenced"),
        (code, code, "cured"),
        (WRONG_COLUMN, WRONG_COLUMN.replace("units", "sales"), "cured"),
    ):
        patch = Patch(code=after, advisor="rules", author="rule", reason="")
        assert verdict_on(before, patch, [check], [RAISED], [PASSED]) == verdict


@pytest.mark.slow
@pytest.mark.requirement("HEAL-8")
def test_the_change_that_an_explanation_names_is_tried_checked_and_kept(healkit: Healkit) -> None:
    """E8: the explanation named the fix of seven kinds of frame mistakes, but healing did not find it."""
    people = pd.DataFrame({"age": [17, 40, 18, 30], "sex": list("mffm"), "wage": ["1,200", "800", "9", "7"]})
    more = pd.DataFrame({"age": ["17"], "team": ["a"]})
    rows = [
        ("df.append(df, ignore_index=True)", lambda df: pd.concat([df, df], ignore_index=True)),
        ("pd.concat(df, df)", lambda df: pd.concat([df, df])),
        ("df.merge(more, on='age')", lambda df: df.merge(more.astype({"age": int}), on="age")),
        ("np.array(df['age'], dtype=np.float)", lambda df: np.array(df["age"], dtype=float)),
        ("df['wage'].astype(float)", lambda df: df["wage"].str.replace(",", "").astype(float)),
        ("df[df['age'] > 18 & df['sex'] == 'f']", lambda df: df[(df["age"] > 18) & (df["sex"] == "f")]),
        ("pd.concat([df, df]).pivot(index='sex', columns='age', values='age')", lambda df: pd.concat([df, df]).pivot_table(index="sex", columns="age", values="age", aggfunc="sum")),
        ("df.groupby('sex').agg(n=('ages', 'sum'))", lambda df: df.groupby("sex").agg(n=("age", "sum"))),
    ]  # fmt: skip
    head = (
        "import numpy as np\nimport pandas as pd\n\nmore = pd.DataFrame({'age': ['17'], 'team': ['a']})\n\n\n"
    )
    for number, (code, right) in enumerate(rows):
        name = f"tool_{number}"
        examples = [{"arguments": {"df": one}, "result": right(one)} for one in (people, people[::-1])]
        healkit.vault.add(name, f"{head}def {name}(df):\n    return {code}\n", examples=examples)
        failure = healkit.execute(name, arguments={"df": people}).failure
        assert failure is not None, code
        report = healkit.heal(name, advisors=["rules"], auto=True)
        assert (report.outcome, report.verdict_code) == ("kept", "cured"), (
            code,
            report.reason,
            report.notes,
            report.best and report.best.patch.doubt,
        )
        assert healkit.execute(name, arguments={"df": people}).failure is None


# What a patch does to the tables that it is given.


TEXTS = pd.DataFrame({"city": ["Bern", "Basel", "Bern"], "units": ["1", "x", "3"]})
NUMBERS = TEXTS.assign(units=[1.0, None, 3.0])
SMALL, SMALL_RIGHT = TEXTS[:1], NUMBERS[:1].astype({"units": int})


def _attempt(
    *rows: tuple[pd.DataFrame, Any, bool], before: str = WRONG_COLUMN, discreet: bool = False
) -> Attempt:
    """Return a patch's attempt. rows: a table, what the patch makes of it, and whether an example says that."""
    checks = [
        Check(
            origin="declared" if known else "failing",
            arguments={"df": values.kept(table)},
            known=known,
            expected=values.kept(made) if known else None,
        )
        for table, made, known in rows
    ]
    results = [
        CheckResult(outcome="passed", value=values.kept(made), outline="DataFrame") for _, made, _ in rows
    ]
    case = Case(
        VaultEntry("f", "default", 1, before, ""),
        None,
        tuple(checks),
        base=(RAISED,) * len(rows),
        discreet=discreet,
    )
    patch = Patch(code=before.replace("units", "sales"), advisor="rules", author="rule", reason="")
    return judged_attempt(case, patch, results)


@pytest.mark.requirement("MEAN-2")
@pytest.mark.parametrize(
    ("table", "made", "lost"),
    [
        (TEXTS, NUMBERS, "1 of 3 values of 'units' become missing."),
        (TEXTS, NUMBERS.sort_values("units", ignore_index=True), "1 of 3 values of 'units' become missing."),
        (TEXTS, NUMBERS.dropna(), "The result has 2 rows, but the table has 3."),
        (TEXTS, pd.concat([NUMBERS, NUMBERS[:1]]).fillna(0.0), "The result has 4 rows, but the table has 3."),
        (TEXTS, TEXTS[:0], "No row is left."),
        (TEXTS, NUMBERS.assign(units=0), "All 3 values of 'units' become 0."),
        (TEXTS, TEXTS.assign(day=pd.Timestamp(0)), "All 3 values of 'day' are Timestamp('1970-01-01 00:00:00')."),
        (TEXTS, NUMBERS["units"], "1 of 3 values of 'units' become missing."),
        (SALES, SALES.assign(sales=["a", "b", "c"]), "The numbers of 'sales' become text."),
        (SALES, SALES.assign(sales=[1, 2, 3]), "1 of 3 numbers of 'sales' lose their decimals."),
        (SALES, SALES.assign(rate=[1.0, None, 2.0]), "1 of 3 values of 'rate' are missing."),
        (SALES, SALES.sort_values("city"), ""),
        (SALES, SALES.assign(double=SALES["sales"] * 2), ""),
        (SALES, SALES.groupby("city")["sales"].sum(), ""),
    ],
)  # fmt: skip
def test_a_loss_that_no_example_shows_takes_the_claim_away(table: Any, made: Any, lost: str) -> None:
    attempt = _attempt((SMALL, SMALL_RIGHT, True), (table, made, False))
    assert attempt.lost == lost
    assert attempt.verdict == ("unproven" if lost else "cured")
    assert attempt.patch.doubt == lost
    assert meaning(attempt).startswith(lost or "Every check passes")


@pytest.mark.requirement("MEAN-2")
@pytest.mark.parametrize(
    "made",
    [NUMBERS, NUMBERS.dropna(), NUMBERS.assign(units=0), TEXTS.assign(day=pd.Timestamp(0)), TEXTS[:0]],
)
def test_a_loss_that_an_example_shows_costs_nothing(made: pd.DataFrame) -> None:
    longer = pd.concat([TEXTS, TEXTS[1:]])
    more = made if made.empty else pd.concat([made, made[1:]])
    attempt = _attempt((TEXTS, made, True), (longer, more, False))
    assert (attempt.lost, attempt.verdict) == ("", "cured")


@pytest.mark.requirement("MEAN-2")
def test_one_value_in_an_example_of_one_row_does_not_allow_another() -> None:
    example = (SMALL, SMALL.assign(day=pd.Timestamp("2024-05-01")), True)
    assert _attempt(example, (TEXTS, TEXTS.assign(day=pd.Timestamp(0)), False)).lost
    assert not _attempt(example, (TEXTS, TEXTS.assign(day=pd.Timestamp("2024-05-01")), False)).lost


@pytest.mark.requirement("MEAN-2")
def test_a_result_that_does_not_depend_on_the_table_is_said() -> None:
    same = "It returns the same result for two different tables."
    right = SALES.groupby("city")["sales"].sum()
    assert _attempt((SALES, right, True), (SALES[:2], right, False)).lost == same
    assert _attempt((SALES, right, True), (SALES[::-1], right, True), (SALES[:2], right, False)).lost == ""


@pytest.mark.requirement("MEAN-2")
def test_an_agent_gets_the_loss_without_names_and_values() -> None:
    rows = (SMALL, SMALL_RIGHT, True), (TEXTS, NUMBERS.assign(units=7), False)
    assert _attempt(*rows, discreet=True).lost == "All 3 values become equal."
    assert _attempt(rows[0], (TEXTS, NUMBERS, False), discreet=True).lost == "1 of 3 values become missing."


@pytest.mark.slow
@pytest.mark.requirement("MEAN-2")
def test_a_patch_that_loses_data_is_not_kept_unasked_and_its_report_begins_with_the_loss(
    healkit: Healkit,
) -> None:
    code = "import pandas as pd\ndef clean(df):\n    return df.assign(units=df['units'].astype(int))\n"
    patched = code.replace("df['units'].astype(int)", "pd.to_numeric(df['units'], errors='coerce')")
    right = code.replace("df['units']", "df['units'].str.replace('x', '2')")
    examples = [{"arguments": {"df": one}, "result": one.assign(units=[1])} for one in (SMALL, SMALL[::-1])]
    healkit.vault.add("clean", code, examples=examples)
    assert healkit.execute("clean", arguments={"df": TEXTS}).failure is not None
    report = healkit.heal("clean", advisors=[Idea(patched, right)], auto=True)
    lossless, lossy = report.attempts
    assert (lossless.patch.code, lossless.lost) == (right, "")
    assert (lossy.verdict, lossy.lost) == ("silenced", "1 of 3 values of 'units' become missing.")
    only = healkit.heal("clean", advisors=[Idea(patched)], auto=True)
    assert only.outcome == "pending"
    assert "1 of 3 values of 'units' become missing. No exception, but" in str(only)

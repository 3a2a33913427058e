"""Healing of tools on frames and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from healing_samples import PASSED, RAISED, Idea, verdict_on

from healkit import Healkit
from healkit.contracts.healing import Check, Patch
from healkit.crossing import values
from healkit.healing.case import checks_of, gather
from healkit.healing.inputs import accepted, frame_variants
from healkit.healing.questions import Answer, Choice, Question
from healkit.rendering.healing import question_text

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
    """DATA-5: a frame of more than 100,000 items is no check itself, and no failure was among the checks."""
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
    assert (attempt.verdict, attempt.patch.doubt) == ("unproven", "The call that failed was not tried.")
    assert "The failing frame is too long to be tried; a sample of its rows does not fail." in report.notes


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
        "Plausible patches disagree. What is right for pick(df=DataFrame({'city': ['Bern', 'Basel'], 'units': [1, 20]}), n=1) ?",
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
    """E8: the explanation named the fix of seven kinds of frame mistakes, and healing found none of them."""
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

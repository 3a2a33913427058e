"""Failing cells that an edit of a cell above heals."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from failing_cells import ORDERS, below, fix_of, healed, ran


@pytest.mark.requirement("MEAN-4")
def test_a_name_is_corrected_where_it_was_made(shell, tmp_path, monkeypatch):
    cells = ["survye = [3, 1]", "sorted(survey)", "max(survey)"]
    below(tmp_path, monkeypatch, *cells)
    fix = fix_of(healed(shell, *cells[:2]))
    assert (fix.cell, fix.code, [one.cell for one in fix.then]) == ("In [2]", "survey = [3, 1]", ["In [3]"])


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.requirement("MEAN-4")
@pytest.mark.parametrize(
    ("above", "failing", "fixed", "order"),
    [
        pytest.param(
            ["orders = orders.sort_values('region', inplace=True)"],
            "orders['revenue'].sum()",
            "orders = orders.sort_values('region')",
            ["In [2]", "In [3]", "In [4]"],
            id="a result of inplace",
        ),
        pytest.param(
            ["best = orders.nlargest(2, 'revenue')", "best = best['revenue'].max()"],
            "best['region'].tolist()",
            "best['revenue'].max()",
            ["In [3]", "In [4]", "In [5]"],
            id="a name with another value",
        ),
        pytest.param(
            ["orders = orders.drop(columns='region')"],
            "orders['region'].nunique()",
            "orders.drop(columns='region')",
            ["In [2]", "In [3]", "In [4]"],
            id="a column that was dropped",
        ),
        pytest.param(
            [
                "from pathlib import Path\nPath('o.csv').write_text('a;b\\n1;2\\n')",
                "table = pd.read_csv('o.csv')",
                "part = table.dropna()",
            ],
            "part['b'].sum()",
            "table = pd.read_csv('o.csv', sep=';')",
            ["In [4]", "In [5]", "In [6]"],
            id="a separator",
        ),
        pytest.param(
            [
                "from pathlib import Path\nPath('o.csv').write_text('Report\\na,b\\n1,2\\n')",
                "table = pd.read_csv('o.csv')",
            ],
            "table['b'].sum()",
            "table = pd.read_csv('o.csv', header=1)",
            ["In [4]", "In [5]"],
            id="a title above the header",
        ),
        pytest.param(
            [
                "from pathlib import Path\nPath('o.csv').write_text('a,b\\n1,2\\n')",
                "table = pd.read_csv('o.csv', header=None)",
            ],
            "table['b'].sum()",
            "table = pd.read_csv('o.csv')",
            ["In [4]", "In [5]"],
            id="a header that is read as a row",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            [
                "from pathlib import Path\nPath('o.csv').write_text('a,b\\n1,2\\n3,4\\n')",
                "table = pd.read_csv('o.csv', header=1)",
            ],
            "table['b'].sum()",
            "table = pd.read_csv('o.csv')",
            ["In [4]", "In [5]"],
            id="a header that is looked for too low",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["orders = orders.drop(columns='region')"],
            "orders['more'] = orders['region'] * 2\norders = orders.set_index('more')",
            "orders.drop(columns='region')",
            ["In [2]", "In [3]", "In [4]"],
            id="a column that was dropped, of a table that the cell binds again",
        ),
    ],
)
def test_the_edit_is_one_of_the_cell_that_made_the_value(shell, above, failing, fixed, order):
    """Run the cells that are named in this order in the same kernel; none fails."""
    fix = fix_of(healed(shell, ORDERS, *above, failing))
    assert (fix.code, fix.kind, fix.ran) == (fixed, "restores", True)
    assert [*(one.cell for one in fix.first), fix.cell, *(one.cell for one in fix.then)] == order
    assert f"Run {order[0]} again, then {', then '.join(order[1:])}." in fix.unknown
    for text in (*(one.source for one in fix.first), fix.code, *(one.source for one in fix.then)):
        assert shell.run_cell(text).success


@pytest.mark.requirement("MEAN-4")
def test_an_overwritten_value_that_other_cells_read_is_a_question(shell, tmp_path, monkeypatch):
    cells = [ORDERS, "orders = orders['revenue']", "orders['region'].nunique()", "orders.max()"]
    below(tmp_path, monkeypatch, *cells)
    report = healed(shell, *cells[:3])
    assert report.outcome == "question"
    assert [(one.code, one.kind) for one in report.others] == [("orders['revenue']", "assumes")]


@pytest.mark.slow
@pytest.mark.requirement("MEAN-4")
@pytest.mark.parametrize(
    "above",
    [
        pytest.param("orders = orders[orders['revenue'] > 2]", id="rows that were filtered"),
        pytest.param("orders = orders.head(1)", id="first rows"),
    ],
)
def test_rows_that_were_left_out_above_do_not_come_back(shell, above):
    report = healed(shell, ORDERS, above, "orders.loc[0, 'revenue'] + orders.loc[1, 'revenue']")
    assert report.fix is None


@pytest.mark.requirement("MEAN-4")
def test_a_column_that_was_renamed_above_has_its_new_name(shell):
    above = "orders = orders.rename(columns={'region': 'total_region'})"
    fix = fix_of(healed(shell, ORDERS, above, "orders['region'].nunique()"))
    assert (fix.cell, fix.code) == ("In [4]", "orders['total_region'].nunique()")
    assert fix.reason == "'region' was renamed to 'total_region' in line 1 of In [3]."


@pytest.mark.requirement("MEAN-4")
def test_a_cell_above_that_failed_is_not_run_again(shell):
    report = healed(shell, ORDERS, "orders = orders['revenue']; orders.nothing", "orders['region'].nunique()")
    assert report.fix is None


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.requirement("MEAN-4")
@pytest.mark.parametrize(
    ("above", "failing", "told"),
    [
        (
            "orders = orders.sort_values('region', inplace=True)",
            "orders.head()",
            "line 1 made it None: orders = ",
        ),
        (
            "orders = orders['revenue']",
            "orders['region']",
            "line 1 gave 'orders' this value: orders = orders[",
        ),
        ("total = orders['revenue'].sum()", "orders['region2']", ""),
    ],
)
def test_the_card_names_the_line_above_that_made_the_value(shell, above, failing, told):
    ran(shell, ORDERS, above)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        shell.run_cell(failing, store_history=True)
    assert (f"In [3], {told}" in out.getvalue()) if told else "In [3]," not in out.getvalue()


@pytest.mark.slow
@pytest.mark.requirement("MEAN-4")
def test_a_file_that_was_replaced_is_read_as_it_is_now(shell, tmp_path):
    for text in ("a;b\n1;2\n", "x\ty\n1\t2\n"):
        (tmp_path / "new.csv").write_text(text)
        (tmp_path / "new.csv").rename(tmp_path / "o.csv")
        wanted = re.split(r"\W", text)[1]
        report = healed(
            shell, "import pandas as pd", "table = pd.read_csv('o.csv')", f"table['{wanted}'].sum()"
        )
        assert fix_of(report).gave.startswith("2")

"""Healing of failing cells of the notebook's own."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from model_server import SECRET_KEY, ModelServer, model_server, says
from panel_page import Page

from healkit import Healkit
from healkit.core.contracts.failure import Failure
from healkit.errors import HealError, UsageInvalid
from healkit.faces.defaults import default_healkit
from healkit.faces.notebook.widgets.cell_order import CellFix as CellFixPanel
from healkit.parts.cells.own_cells import notebook_cells
from healkit.parts.explain.explanation import MatchedFailure
from healkit.parts.explain.fixes import change_of
from healkit.parts.heal.advisors.model import _without_values
from healkit.parts.heal.cell_records import CellFix
from healkit.parts.heal.report import CellReport

ORDERS = """
import nbformat
import pandas as pd
orders = pd.DataFrame({"order_id": [1, 2, 3], "revenue": [1.5, 2.5, 3.0], "region": ["a", "b", "a"]})
"""
CUPS = """
from dataclasses import dataclass

@dataclass
class Cup:
    name: str
    sizes: list

def cups_of(cups):
    return [cup for cup in cups if cup.sizes]
"""
ACCOUNT = """
class Account:
    def __init__(self, balance):
        self.balance = balance

    def deposit(self, sum):
        self.balanc += sum
"""
MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"


def ran(shell: Any, *cells: str) -> Any:
    """Run cells in a shell with healkit, as a notebook does."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        shell.reset()
        shell.run_cell("%load_ext healkit", store_history=True)
        for cell in cells:
            result = shell.run_cell(cell, store_history=True)
    return result


def healed(shell: Any, *cells: str, **options: Any) -> CellReport:
    """Run cells of which the last fails, and heal that."""
    result = ran(shell, *cells)
    assert (result.error_in_exec or result.error_before_exec) is not None
    return default_healkit().heal_cell(**options)


def the_failure() -> Failure:
    """Return the failure of the newest failing cell."""
    cell = notebook_cells.find(None)
    assert cell is not None
    return cell.failure


def fix_of(report: CellReport) -> CellFix:
    """Return the fix, which there is."""
    assert report.fix is not None, report
    return report.fix


@pytest.mark.requirement("FACE-11")
@pytest.mark.parametrize(
    ("cells", "fixed", "gave"),
    [
        pytest.param(
            [ORDERS, "total = orders['revnue'].sum()\ntotal"],
            "total = orders['revenue'].sum()\ntotal",
            "7.0",
            id="column",
        ),
        pytest.param(
            [ORDERS, "# by region\norders.groupby('region')['revnue'].sum()"],
            "# by region\norders.groupby('region')['revenue'].sum()",
            "a column of 2 values",
            id="comment",
        ),
        pytest.param(["total = 5", "x = totl + 3"], "x = total + 3", "8", id="name"),
        pytest.param(
            ["rows = ['1', '2']", "%time\nsum(rows)"], "%time\nsum(map(int, rows))", "3", id="magic"
        ),
        pytest.param(
            ["async def f():\n    return {'total': 1}", "y = await f()\ny['totl']"],
            "y = await f()\ny['total']",
            "1",
            id="await",
        ),
        pytest.param(["rows = [1]", "print('a'\nlen(rows)"], "print('a')\nlen(rows)", "1", id="syntax"),
        pytest.param(
            ["rows = [1, 2]", "rows.append(3)\nrows.add(4)\nlen(rows)"],
            "rows.append(3)\nrows.append(4)\nlen(rows)",
            "4",
            id="changed before it failed",
        ),
        pytest.param(
            [ORDERS, "a = orders['revnue'].sum()\nb = orders['regin'].nunique()\na, b"],
            "a = orders['revenue'].sum()\nb = orders['region'].nunique()\na, b",
            "(np.float64(7.0), 2)",
            id="two mistakes",
        ),
        pytest.param(
            ["rows = {'total': 1}", "print('a'\nrows['totl']"],
            "print('a')\nrows['total']",
            "1",
            id="syntax and a key",
        ),
        pytest.param(
            ["prices = {'a': 1}", "for k, v in prices:\n    print(k, v)\nlen(k)"],
            "for k, v in prices.items():\n    print(k, v)\nlen(k)",
            "1",
            id="type of a value",
        ),
        pytest.param(
            ["def total(rows):\n    return pd.DataFrame(rows).sum()", "total([{'a': 1}])"],
            "import pandas as pd\ntotal([{'a': 1}])",
            "a column of 1 value",
            id="import",
        ),
        pytest.param(
            ["sum = 0", "rows = [1, 2]\nsum(rows)"],
            "from builtins import sum\nrows = [1, 2]\nsum(rows)",
            "3",
            id="hidden built-in",
        ),
        pytest.param(
            ["total = 1", "total = total + 1\nprint(totl)\ntotal"],
            "total = total + 1\nprint(total)\ntotal",
            "2",
            id="bound anew before it failed",
        ),
    ],
)
def test_a_failing_cell_gets_an_edit_that_was_run(shell, cells, fixed, gave):
    report = healed(shell, *cells)
    fix = fix_of(report)
    assert (fix.code, fix.cell, fix.ran) == (fixed, report.label, True)
    assert fix.then == ()
    assert fix.gave.startswith(gave)
    assert fix.said in str(report)


@pytest.mark.requirement("FACE-11")
def test_the_edit_is_one_of_the_cell_that_defines_the_broken_function(shell):
    report = healed(
        shell, ORDERS, "def by(frame):\n    return frame.groupby('region')['revnue'].sum()", "by(orders)"
    )
    fix = fix_of(report)
    assert (report.label, fix.cell) == ("In [4]", "In [3]")
    assert fix.code == "def by(frame):\n    return frame.groupby('region')['revenue'].sum()"
    assert fix.unknown == ("In [3] has to be run again, then In [4].",)
    assert [(place.cell, place.source) for place in fix.then] == [("In [4]", "by(orders)")]
    assert fix.hunks == [
        (
            ["    return frame.groupby('region')['revnue'].sum()"],
            ["    return frame.groupby('region')['revenue'].sum()"],
        )
    ]


def test_an_instance_of_an_own_class_is_made_again_by_its_statement(shell):
    report = healed(shell, ACCOUNT, "account = Account(3)", "account.deposit(2)\naccount.balance")
    fix = fix_of(report)
    assert (fix.cell, fix.gave) == ("In [2]", "5")
    assert [place.cell for place in fix.then] == ["In [3]", "In [4]"]
    assert "In [2] has to be run again, then In [3], then In [4]." in fix.unknown
    assert "Made again in the worker: `account`." in report.notes


@pytest.mark.requirement("FACE-11")
def test_nothing_in_the_kernel_changes_and_no_value_is_pickled(shell, tmp_path):
    cells = (
        ORDERS,
        "class Trap:\n    def __reduce__(self):\n        open('pickled', 'w').close()\n        return (int, ())\ntrap = Trap()",
        "orders['twice'] = 2 * orders['revenue']\norders.loc[0, 'revenue'] = 100\norders['revnue'].sum(), trap",
    )
    report = healed(shell, *cells)
    assert fix_of(report).gave
    pd.testing.assert_series_equal(shell.user_ns["orders"]["twice"], pd.Series([3.0, 5.0, 6.0], name="twice"))
    assert not Path("pickled").exists()


def test_what_cannot_cross_costs_only_the_statements_that_need_it(shell):
    cells = (
        ORDERS,
        "import threading\nlock = [threading.Lock() for _ in range(1)]\nlock = lock[0]",
        "lock.acquire()\ntotal = orders['revnue'].sum()",
    )
    report = healed(shell, *cells)
    assert fix_of(report).gave.startswith("7.0")


def test_a_statement_of_values_that_cannot_cross_is_not_run_and_its_edit_is_said_to_be_untried(shell):
    cells = ("def made():\n    yield 1\nlive = (x for x in [made()])", "live.appnd(3)")
    report = healed(shell, *cells)
    assert report.outcome in ("not_tried", "not_cured")
    assert report.fix is None or not report.fix.ran


@pytest.mark.requirement("FACE-11")
def test_a_missing_cell_comes_before_any_edit(shell):
    ran(shell, "def missing():\n    return later", "later = 2", "del later")
    result = shell.run_cell("missing()", store_history=True)
    assert result.error_in_exec is not None
    report = default_healkit().heal_cell()
    assert (report.outcome, report.cells, report.fix) == ("rerun", ("In [3]",), None)


def test_a_line_that_is_added_at_the_end_of_a_function_goes_into_its_cell(shell):
    told = "def half(n):\n    part = n / 2\n    print(f'{n} -> {part}')"
    report = healed(shell, told, "round(half(5))")
    fix = fix_of(report)
    assert (fix.cell, fix.code) == ("In [2]", f"{told}\n    return part")
    assert fix.gave == "2"


def test_a_name_with_another_number_is_not_what_is_meant(shell):
    report = healed(shell, "prices = {'price_6': 1, 'price_7': 2}", "prices['price_9'] + 1")
    assert report.fix is None


def test_a_file_that_is_there_may_be_written_to_in_the_worker(shell):
    Path("report.txt").write_text("old")
    cell = "with open('report.txt', 'w') as out:\n    out.write('a')\nout.write('b')"
    fix = fix_of(healed(shell, "1", cell))
    assert fix.code == cell.replace("\nout.write('b')", "\n    out.write('b')")
    assert Path("report.txt").read_text() == "a"


def test_a_file_that_the_cell_names_is_there(shell):
    Path("sales.csv").write_text("region,units\na,1\nb,2\n")
    report = healed(shell, "import pandas as pd", "frame = pd.read_csv('sales.csv')\nframe['unit'].sum()")
    assert fix_of(report).gave.startswith("3")


@pytest.mark.parametrize(
    "cell", ["assert mean([1, 2, 3]) == 2\nassert mean([4]) == 4", "assert mean([1, 2, 3]) == 2"]
)
def test_a_broken_function_is_searched_for_an_edit_where_an_assertion_says_what_is_right(shell, cell):
    """Assertions were healed by `!=` in the place of `==`."""
    report = healed(shell, MEAN, cell)
    fix = fix_of(report)
    assert {one.cell for one in (fix, *report.others)} == {"In [2]"}
    assert eval("mean([2, 4])", {}, exec(fix.code, scope := {}) or scope) == 3


def test_without_a_failure_it_says_so(shell):
    ran(shell, "1")
    with pytest.raises(HealError, match="No cell of this notebook has failed"):
        default_healkit().heal_cell()


@pytest.mark.requirement("FACE-10")
def test_the_magic_shows_the_fix_and_puts_it_into_its_own_cell(shell):
    ran(shell, ORDERS, "orders['revnue'].sum()")
    asked = []
    shell.set_next_input = lambda text, replace=False: asked.append((text, replace))
    try:
        shown = shell.run_cell("%heal", store_history=True).result
        assert "%heal --apply" in str(shown)
        assert asked == []
        shell.run_cell("%heal --apply", store_history=True)
        assert asked == [("orders['revenue'].sum()", True)]
        shell.run_cell("%heal 3 --apply", store_history=True)
        assert len(asked) == 2
    finally:
        del shell.set_next_input


def test_the_magic_that_a_report_names_runs(shell):
    report = healed(shell, "x = 1", "x.foo")
    (note,) = [note for note in report.notes if "%heal" in note]
    command = note.split("`")[1]
    assert command == "%heal --with rules,search"
    shown = shell.run_cell(command, store_history=True)
    assert shown.success
    assert "%heal --with" not in str(shown.result)


@pytest.mark.parametrize("flag", ["--panel", "--auto", "--later", "--log-id 1", "--live host.price"])
def test_what_is_for_tools_is_refused_for_a_cell(shell, flag):
    ran(shell, "x = 1", "x.foo")
    assert isinstance(ran_on(shell, f"%heal {flag}"), UsageInvalid)


def ran_on(shell: Any, cell: str) -> BaseException | None:
    """Run one more cell, and return what it raised."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return shell.run_cell(cell, store_history=True).error_in_exec


@pytest.mark.requirement("FACE-10")
def test_the_panel_of_a_cell_gives_the_edit_as_it_is_and_a_reloaded_page_what_was_found(shell):
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    text = f"key = '{secret}'\ntotal = 5\nx = totl + 3"
    ran(shell, text)
    page = Page(CellFixPanel("<div></div>", 2))
    assert page.ask("about") == {"card": "<div></div>", "begun": False, "model": ""}
    found = page.ask("heal")
    assert page.ask("about")["begun"] is True
    assert page.ask("heal", join=True) == found
    (fix,) = found["fixes"]
    assert fix["edit"]["source"] == text
    assert fix["edit"]["code"] == text.replace("totl", "total")
    assert fix["edit"]["then"] == []
    assert secret not in str({**fix, "edit": ""})


@pytest.mark.requirement("MEAN-2")
def test_an_edit_that_loses_values_is_no_fix_and_says_what_it_costs(shell):
    report = healed(shell, ORDERS, "orders['region'].astype(int)")
    assert (report.outcome, report.fix, report.others) == ("not_cured", None, ())
    (coerced,) = report.not_fixes
    assert (coerced.kind, coerced.lost) == ("discards", ("3 of 3 values become missing.",))
    assert "3 of 3 values become missing." in str(report)


@pytest.mark.requirement("MEAN-1")
def test_a_default_for_a_column_that_is_not_there_is_no_fix(shell):
    report = healed(shell, ORDERS, "orders['profit'] += 1")
    assert report.fix is None
    assert {one.kind for one in report.not_fixes} == {"invents"}


@pytest.mark.requirement("MEAN-1")
def test_two_readings_are_a_question_and_nothing_is_put_into_a_cell(shell):
    merged = "joined = orders.merge(orders, on='order_id')\njoined['revenue'].sum()"
    report = healed(shell, ORDERS, merged)
    assert (report.outcome, report.fix) == ("question", None)
    assert {one.code.partition("[")[2][:11] for one in report.others} == {"'revenue_x'", "'revenue_y'"}
    with pytest.raises(HealError, match="There is no fix for"):
        ran(shell, ORDERS, merged, "%heal --apply").raise_error()


def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *cells: str, **result: str) -> None:
    """Write the notebook that these cells are of, with the result that it has saved of one."""
    book = nbformat.v4.new_notebook()
    for cell in cells:
        made = nbformat.v4.new_code_cell(cell)
        if text := result.get("saved") if cell == cells[-2] else None:
            made.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": text}, execution_count=1)]
        book.cells.append(made)
    nbformat.write(book, tmp_path / "book.ipynb")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "book.ipynb"))


@pytest.mark.requirement("MEAN-3")
@pytest.mark.parametrize(
    ("following", "support"),
    [
        ("by.sum() + 1", "The next cell runs too."),
        ("by['z']", "Cell 3 then fails: KeyError: 'z'."),
        ("no_such_name + 1", ""),
    ],
)
def test_the_cells_below_speak_for_a_fix_or_against_it(shell, tmp_path, monkeypatch, following, support):
    cell = "by = orders.groupby('regoin')['revenue'].sum()"
    below(tmp_path, monkeypatch, ORDERS, cell, following)
    report = healed(shell, ORDERS, cell)
    assert " ".join(fix_of(report).support) == support
    assert "by" not in shell.user_ns


@pytest.mark.requirement("MEAN-3")
def test_the_result_that_the_notebook_has_saved_speaks_for_a_fix(shell, tmp_path, monkeypatch):
    cell = "sum(orders['revenu'])"
    below(tmp_path, monkeypatch, ORDERS, cell, "1", saved="7.0")
    assert "The notebook has saved the same result." in fix_of(healed(shell, ORDERS, cell)).support


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
    assert f"{order[0]} has to be run again, then {', then '.join(order[1:])}." in fix.unknown
    for text in (*(one.source for one in fix.first), fix.code, *(one.source for one in fix.then)):
        assert shell.run_cell(text).success


@pytest.mark.requirement("MEAN-4")
def test_an_overwritten_value_that_other_cells_read_is_a_question(shell, tmp_path, monkeypatch):
    cells = [ORDERS, "orders = orders['revenue']", "orders['region'].nunique()", "orders.max()"]
    below(tmp_path, monkeypatch, *cells)
    report = healed(shell, *cells[:3])
    assert report.outcome == "question"
    assert [(one.code, one.kind) for one in report.others] == [("orders['revenue']", "assumes")]


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


@pytest.mark.requirement("MEAN-1")
@pytest.mark.parametrize(
    ("cells", "fixed"),
    [
        pytest.param(
            [f"{ORDERS}orders.loc[0, 'revenue'] = None", "orders['revenue'].fill_na(0)"],
            "orders['revenue'].fillna(0)",
            id="what its author wrote fills in",
        ),
        pytest.param(
            [CUPS, "tea = cups_of([Cup('tea', [1, 2])])", "print(tea[0].name, ','.join(tea[0].sizes))"],
            "print(tea[0].name, ','.join(map(str, tea[0].sizes)))",
            id="objects of a class of the notebook's own",
        ),
        pytest.param(
            ["from logging import root as log\ncups = {'tea': 3}", "name = log.name\nname, cups['tae']"],
            "name = log.name\nname, cups['tea']",
            id="an object that was imported",
        ),
        pytest.param(
            ["size, rows = '1.5', ['2', '3']", "sum(row for row in rows) * 2"],
            "sum(int(row) for row in rows) * 2",
            id="texts that are added up",
        ),
        pytest.param(
            ["import math, random\nxs = [1, 2, 3]", "random.sample(2, xs)"],
            "random.sample(xs, 2)",
            id="two arguments in each other's place",
        ),
        pytest.param(
            [ORDERS, "1 - orders['revenue'].max"], "1 - orders['revenue'].max()", id="no parentheses"
        ),
        pytest.param(
            ["import numpy as np", "np.argwhere[np.arange(2) > 0]"],
            "np.argwhere(np.arange(2) > 0)",
            id="square brackets",
        ),
        pytest.param(
            ["import numpy as np", "np.histogram([1, 2], biins=2)"],
            "np.histogram([1, 2], bins=2)",
            id="argument",
        ),
        pytest.param(
            [ORDERS + "orders.to_csv('orders.csv')", "pd.read_csv('orders')"],
            "pd.read_csv('orders.csv')",
            id="a name without its ending",
        ),
        pytest.param(
            ["import pandas as pd\ns = pd.Series([1.0, None])", "s.fillna(method='ffill')"],
            "s.ffill()",
            id="what the removed interface filled in",
        ),
        pytest.param(
            ["names, counts = ['a'], [1]", "','.join(names), ','.join(counts)"],
            "','.join(names), ','.join(map(str, counts))",
            id="the part of the line that failed",
        ),
    ],
)
def test_an_edit_that_keeps_the_meaning_is_a_fix(shell, cells, fixed):
    fix = fix_of(healed(shell, *cells))
    assert (fix.code, fix.lost) == (fixed, ())
    assert "fill_na" not in cells[-1] or "1 missing value is filled in." in fix.support


@pytest.mark.requirement("MEAN-1")
@pytest.mark.parametrize(
    ("cells", "reading"),
    [
        (["pair = (1, 2)", "a, b, rest = pair"], "a, b = pair"),
        (["rows = [(1, 2), (3,)]", "[b for a, b in rows]"], "[b for a, b in enumerate(rows)]"),
        (["words = ['2', 3]", "max('2', 3), 1 * '2.5' * 2.0"], None),
    ],
)
def test_where_a_value_may_be_missing_it_is_a_question(shell, cells, reading):
    report = healed(shell, *cells)
    assert report.fix is None or report.fix.code != reading
    assert reading is None or [one.code for one in report.others] == [reading]


@pytest.mark.requirement("MEAN-1")
def test_an_assert_of_a_library_is_no_reason_to_search(shell):
    report = healed(shell, ORDERS, "orders.groupby('region').agg('revenue', 'sum')")
    assert report.fix is None


SHELF = """
class Shelf:
    def __init__(self, size):
        self.size = size

    def half(self):
        return self.size / 2
"""


@pytest.mark.requirement("MEAN-1")
@pytest.mark.parametrize(
    ("written", "meant"),
    [("return size", "return self.size"), ("        size = size", "        self.size = size")],
)
def test_a_name_without_its_self_is_corrected_in_the_class(shell, written, meant):
    fix = fix_of(healed(shell, SHELF.replace(meant, written), "Shelf(4).half()"))
    assert (fix.cell, fix.code) == ("In [2]", SHELF)


@pytest.mark.requirement("MEAN-1")
def test_a_cell_of_scikit_learn_that_asks_for_its_libraries_is_tried(shell):
    """It reads /proc/self/maps, which a fork of the trial server may not."""
    cell = (
        "import numpy as np\nfrom sklearn.cluster import KMeans\npoints = np.array([[1.0, 1.1], [5.0, 5.2]])"
    )
    fix = fix_of(
        healed(shell, cell, "KMeans(n_clusters=2, n_init=1 random_state=3).fit_predict(points).sum()")
    )
    assert fix.gave.startswith("1")


@pytest.mark.requirement("MEAN-1")
def test_a_text_that_is_a_number_may_be_meant_as_either(shell):
    report = healed(shell, "entry = {'points': '17'}", "entry['points'] + 3")
    assert report.outcome == "question"
    assert {one.code for one in report.others} == {"int(entry['points']) + 3", "entry['points'] + str(3)"}


@pytest.mark.requirement("MEAN-5")
def test_a_change_that_the_card_names_and_the_fix_is_not_is_told_no_more(shell, tmp_path, monkeypatch):
    """Cells show that the near name, which the card knows, is the misspelt one."""
    cells = ["survye = [3, 1]", "sorted(survey)", "max(survey)"]
    below(tmp_path, monkeypatch, *cells)
    report = healed(shell, *cells[:2])
    assert "survye" in change_of(MatchedFailure(the_failure()), cells[1]).lines
    assert report.refutes
    assert report.found == "NameError: name 'survey' is not defined."


@pytest.mark.requirement("MEAN-5")
@pytest.mark.parametrize("cell", ["summ = sun([1])", "[3, 1].apend(2)", "{'a': 1}['b']", "int('3.5')"])
def test_the_first_edit_is_what_the_card_says(shell, cell):
    report = healed(shell, cell)
    change = change_of(MatchedFailure(the_failure()), cell)
    first = report.fix or next(iter(report.others), None)
    assert report.refutes is (change is not None and (first is None or change.code != first.code))
    assert change is None or not report.refutes


@pytest.mark.requirement("MEAN-5")
def test_a_text_that_can_be_read_and_still_fails_is_not_shown_as_code(shell):
    report = healed(shell, "values = {'a': 1]\nvalues['b']")
    assert report.fix is None
    assert "It then ends in KeyError" in report.reason


@pytest.mark.requirement("FACE-11")
@pytest.mark.parametrize(
    ("place", "written", "right"),
    [
        ("data/orders.csv", "orders.csv", "data/orders.csv"),
        ("../orders.csv", "orders.csv", "../orders.csv"),
        ("orders.csv", "data/orders.csv", "orders.csv"),
        ("../data/orders.csv", "data/orders.csv", "../data/orders.csv"),
    ],
)
def test_a_file_a_folder_lower_or_higher_is_found_and_no_grant_is_spoken_of(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, written: str, right: str
) -> None:
    (here := tmp_path / "work").mkdir()
    monkeypatch.chdir(here)
    (here / place).parent.mkdir(exist_ok=True)
    (here / place).write_text("a,b\n1,2\n")
    report = healed(shell, "import pandas as pd", f"pd.read_csv('{written}')")
    first = report.fix or report.others[0]  # another folder may have another file, which is a question then
    assert first.code == f"pd.read_csv('{right}')"
    (here / place).unlink()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        shell.run_cell(f"open('{written}')", store_history=True)
    assert f"The file '{written}' does not exist" in out.getvalue()
    assert "%vault grant" not in out.getvalue()


@pytest.mark.requirement("FACE-11")
def test_what_the_notebook_has_is_not_imported_again(shell: Any) -> None:
    report = healed(shell, "import pandas as pd", "total = pd.Series([1, 2].sum()\ntotal")
    assert "import" not in fix_of(report).code
    report = healed(shell, "import pandas as pd", "frame = pd.DataFrame({'a': [1]})\nnp.sum(frame['a'])")
    assert fix_of(report).code.count("import") == 1


# A model, where somebody asks one.

PEOPLE = """
import pandas as pd
people = pd.DataFrame({"name": ["Zelda", "Xaver"], "salary": ["73,519", "O'88 231"], "joined": ["2019-07-23", "x"]})
grade = pd.Categorical(["Wunderkind", "Zwerg"])
notes = {"Zelda": "promoted"}
"""
PAID = "from fractions import Fraction\ndef paid(frame):\n    return [Fraction(text) for text in frame['salary']]"
MEANT = (
    "The thousands have commas.\n```python\ndef paid(frame):\n"
    "    return [Fraction(''.join(filter(str.isdigit, text))) for text in frame['salary']]\n"
    "(sum(paid(people)), grade, notes)\n```"
)
#: Words of the rows; `salary` and the other columns' names are none.
OF_ROWS = ("Zelda", "Xaver", "73,519", "73", "519", "88", "231", "2019", "Wunderkind", "Zwerg", "promoted")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.mark.requirement("MEAN-8")
@pytest.mark.requirement("HEAL-5", "FACE-11")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_gets_a_cell_and_metadata_and_its_answer_is_run_like_any_other_edit(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    ran(shell, PEOPLE, PAID, "(sum(paid(people)), grade, notes)")
    config = dataclasses.replace(default_healkit().config, **settings_of(server, provider))
    with Healkit(default_healkit().url, config=config) as healkit:
        assert healkit.heal_cell().fix is None  # nobody named the model
        assert server.requests == []
        server.plan += [says("It is a lost case."), says(MEANT)]
        report = healkit.heal_cell(advisors=["model"])
    fix = fix_of(report)
    assert (fix.cell, fix.advisor, fix.ran, fix.verdict) == ("In [3]", "model", True, "unproven")
    assert fix.reason == "The model says: “The thousands have commas.”"
    assert fix.gave == "a tuple of 3 items"
    first, second = (request.text for request in server.requests)
    for told in (first, second):
        assert not [word for word in OF_ROWS if re.search(rf"\b{word}\b", told)], told
    for told in ("def paid(frame):", "'salary' (", "shape (2, 3)", "Invalid literal for Fraction: …"):
        assert told in first
    assert "holds no fenced block of code" in second


@pytest.mark.requirement("HEAL-5")
def test_with_values_shared_a_model_gets_the_message_and_the_first_rows(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALKIT_MODEL_KEY", SECRET_KEY)
    ran(shell, PEOPLE, PAID, "sum(paid(people))")
    shared = settings_of(server, "openai", heal_model_values=True)
    config = dataclasses.replace(default_healkit().config, **shared)
    with Healkit(default_healkit().url, config=config) as healkit:
        server.plan.append(says("```python\nraise SystemExit\n```"))
        report = healkit.heal_cell(advisors=["model"])
    assert report.outcome == "not_cured"
    assert "Xaver" in server.requests[0].text
    assert "the whole program: 'paid' is missing" in server.requests[1].text


@pytest.mark.requirement("MEAN-8")
@pytest.mark.requirement("HEAL-5", "FACE-10")
def test_a_card_without_a_fix_offers_the_model_only_where_one_is_set_up(
    shell: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(shell, PEOPLE, PAID, "sum(paid(people))")
    page = Page(CellFixPanel("<div></div>", 4))
    assert page.ask("about")["model"] == ""
    assert page.ask("heal")["askable"] is True
    for name, value in settings_of(server, "openai").items():
        monkeypatch.setenv(f"HEALKIT_{name.upper()}", str(value))
    default_healkit().close()  # the next one reads the environment
    assert page.ask("about")["model"] == "teacher-1"
    server.plan.append(says(MEANT.replace("(sum(paid(people)), grade, notes)", "sum(paid(people))")))
    (fix,) = page.ask("heal", ask=True)["fixes"]
    assert fix["said"] == "Runs, and gives a Fraction."
    default_healkit().close()
    monkeypatch.delenv("HEALKIT_HEAL_MODEL")
    assert page.ask("about")["model"] == ""


def settings_of(server: ModelServer, provider: str, **more: Any) -> dict[str, Any]:
    made = server.config(provider)
    return {
        name: getattr(made, name) for name in ("heal_model", "heal_model_url", "heal_model_provider")
    } | more


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("could not convert string to float: '$36'", "could not convert string to float: …"),
        ('Unable to parse string "O\'Brien" at position 3', "Unable to parse string …"),
        (
            "Unknown datetime string format, unable to parse: Zelda, at position 2",
            "Unknown datetime string format, unable to parse…",
        ),
        ("name 'totl' is not defined", "name 'totl' is not defined"),
        (
            "Length of values (3) does not match length of index (4)",
            "Length of values … does not match length of index …",
        ),
        (
            "unsupported operand type(s) for +: 'int' and 'str'",
            "unsupported operand type(s) for +: 'int' and 'str'",
        ),
        ("first line\nZelda", "first line"),
        ("['Zelda', 'Xaver'] not in index", "[…"),
    ],
)
def test_a_message_is_told_up_to_where_it_may_quote_a_value(message: str, told: str) -> None:
    assert _without_values(message, {"totl", "total", "int", "str", *dir(builtins)}) == told

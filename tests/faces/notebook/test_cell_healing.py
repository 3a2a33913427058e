"""Healing of failing cells of the notebook's own."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from failing_cells import ORDERS, fix_of, healed, ran, ran_on
from panel_page import Page

from healkit.errors import HealError, UsageInvalid
from healkit.faces.defaults import default_healkit
from healkit.faces.notebook.widgets.cell_order import CellFix as CellFixPanel

ACCOUNT = """
class Account:
    def __init__(self, balance):
        self.balance = balance

    def deposit(self, sum):
        self.balanc += sum
"""


MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"


#: What is wrong → the cells, of which the last fails; the fix of that, and what it then gives.
FIXES: dict[str, tuple[list[str], str, str]] = {
    # First: what an earlier notebook of the same kernel has imported would be named as the cell to run again.
    "import": (
        ["def total(rows):\n    return pd.DataFrame(rows).sum()", "total([{'a': 1}])"],
        "import pandas as pd\ntotal([{'a': 1}])",
        "a column of 1 value",
    ),
    "column": (
        [ORDERS, "total = orders['revnue'].sum()\ntotal"],
        "total = orders['revenue'].sum()\ntotal",
        "7.0",
    ),
    "comment": (
        [ORDERS, "# by region\norders.groupby('region')['revnue'].sum()"],
        "# by region\norders.groupby('region')['revenue'].sum()",
        "a column of 2 values",
    ),
    "name": (
        ["total = 5", "x = totl + 3"],
        "x = total + 3",
        "8",
    ),
    "magic": (
        ["rows = ['1', '2']", "%time\nsum(rows)"],
        "%time\nsum(map(int, rows))",
        "3",
    ),
    "await": (
        ["async def f():\n    return {'total': 1}", "y = await f()\ny['totl']"],
        "y = await f()\ny['total']",
        "1",
    ),
    "syntax": (
        ["rows = [1]", "print('a'\nlen(rows)"],
        "print('a')\nlen(rows)",
        "1",
    ),
    "changed before it failed": (
        ["rows = [1, 2]", "rows.append(3)\nrows.add(4)\nlen(rows)"],
        "rows.append(3)\nrows.append(4)\nlen(rows)",
        "4",
    ),
    "two mistakes": (
        [ORDERS, "a = orders['revnue'].sum()\nb = orders['regin'].nunique()\na, b"],
        "a = orders['revenue'].sum()\nb = orders['region'].nunique()\na, b",
        "(np.float64(7.0), 2)",
    ),
    "syntax and a key": (
        ["rows = {'total': 1}", "print('a'\nrows['totl']"],
        "print('a')\nrows['total']",
        "1",
    ),
    "type of a value": (
        ["prices = {'a': 1}", "for k, v in prices:\n    print(k, v)\nlen(k)"],
        "for k, v in prices.items():\n    print(k, v)\nlen(k)",
        "1",
    ),
    "hidden built-in": (
        ["sum = 0", "rows = [1, 2]\nsum(rows)"],
        "from builtins import sum\nrows = [1, 2]\nsum(rows)",
        "3",
    ),
    "bound anew before it failed": (
        ["total = 1", "total = total + 1\nprint(totl)\ntotal"],
        "total = total + 1\nprint(total)\ntotal",
        "2",
    ),
}


@pytest.mark.timeout(300)
@pytest.mark.requirement("FACE-11")
def test_a_failing_cell_gets_an_edit_that_was_run(shell):
    wrong = {}
    for name, (cells, fixed, gave) in FIXES.items():
        report = healed(shell, *cells)
        fix = report.fix
        right = fix and (fix.code, fix.cell, fix.ran, fix.then) == (fixed, report.label, True, ())
        if not (right and fix.gave.startswith(gave) and fix.said in str(report)):
            wrong[name] = str(report)
    assert wrong == {}


@pytest.mark.requirement("FACE-11")
def test_the_edit_is_one_of_the_cell_that_defines_the_broken_function(shell):
    report = healed(
        shell, ORDERS, "def by(frame):\n    return frame.groupby('region')['revnue'].sum()", "by(orders)"
    )
    fix = fix_of(report)
    assert (report.label, fix.cell) == ("In [4]", "In [3]")
    assert fix.code == "def by(frame):\n    return frame.groupby('region')['revenue'].sum()"
    assert fix.unknown == ("Run In [3] again, then In [4].",)
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
    assert "Run In [2] again, then In [3], then In [4]." in fix.unknown
    assert "Created again in the worker: `account`." in report.notes


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


@pytest.mark.slow
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


def test_what_is_for_tools_is_refused_for_a_cell(shell):
    ran(shell, "x = 1", "x.foo")
    for flag in ("--panel", "--auto", "--later", "--log-id 1", "--live host.price"):
        assert isinstance(ran_on(shell, f"%heal {flag}"), UsageInvalid), flag


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


@pytest.mark.requirement("FACE-11")
@pytest.mark.parametrize(
    ("place", "written", "right"),
    [
        ("data/orders.csv", "orders.csv", "data/orders.csv"),
        pytest.param("../orders.csv", "orders.csv", "../orders.csv", marks=pytest.mark.slow),
        pytest.param("orders.csv", "data/orders.csv", "orders.csv", marks=pytest.mark.slow),
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

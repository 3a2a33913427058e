"""What speaks for an edit of a failing cell, and against it."""

from __future__ import annotations

import pytest
from failing_cells import ORDERS, below, fix_of, healed, ran

from healkit.core.contracts.failure import Failure
from healkit.errors import HealError
from healkit.parts.cells.own_cells import notebook_cells
from healkit.parts.explain.explanation import MatchedFailure
from healkit.parts.explain.fixes import change_of
from healkit.plain_text import untick

CUPS = """
from dataclasses import dataclass

@dataclass
class Cup:
    name: str
    sizes: list

def cups_of(cups):
    return [cup for cup in cups if cup.sizes]
"""


def the_failure() -> Failure:
    """Return the failure of the newest failing cell."""
    cell = notebook_cells.find(None)
    assert cell is not None
    return cell.failure


@pytest.mark.slow
@pytest.mark.requirement("MEAN-2")
def test_an_edit_that_loses_values_does_not_fix_and_names_the_loss(shell):
    report = healed(shell, ORDERS, "orders['region'].astype(int)")
    assert (report.outcome, report.fix, report.others) == ("not_cured", None, ())
    (coerced,) = report.not_fixes
    assert (coerced.kind, coerced.lost) == ("discards", ("3 of 3 values become missing.",))
    assert "3 of 3 values become missing." in str(report)


@pytest.mark.slow
@pytest.mark.requirement("MEAN-1")
def test_a_default_for_a_column_that_is_not_there_is_no_fix(shell):
    report = healed(shell, ORDERS, "orders['profit'] += 1")
    assert report.fix is None
    assert {one.kind for one in report.not_fixes} == {"invents"}


@pytest.mark.slow
@pytest.mark.requirement("MEAN-1")
def test_two_readings_are_a_question_and_nothing_is_put_into_a_cell(shell):
    merged = "joined = orders.merge(orders, on='order_id')\njoined['revenue'].sum()"
    report = healed(shell, ORDERS, merged)
    assert (report.outcome, report.fix) == ("question", None)
    assert {one.code.partition("[")[2][:11] for one in report.others} == {"'revenue_x'", "'revenue_y'"}
    with pytest.raises(HealError, match="Several edits are possible for"):
        ran(shell, ORDERS, merged, "%heal --apply").raise_error()


@pytest.mark.slow
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
    assert "The notebook contains the same saved result." in fix_of(healed(shell, ORDERS, cell)).support


#: What is meant → the cells, of which the last fails, and the fix of that.
MEANT: dict[str, tuple[list[str], str]] = {
    "what its author wrote fills in": (
        [f"{ORDERS}orders.loc[0, 'revenue'] = None", "orders['revenue'].fill_na(0)"],
        "orders['revenue'].fillna(0)",
    ),
    "objects of a class of the notebook's own": (
        [CUPS, "tea = cups_of([Cup('tea', [1, 2])])", "print(tea[0].name, ','.join(tea[0].sizes))"],
        "print(tea[0].name, ','.join(map(str, tea[0].sizes)))",
    ),
    "an object that was imported": (
        ["from logging import root as log\ncups = {'tea': 3}", "name = log.name\nname, cups['tae']"],
        "name = log.name\nname, cups['tea']",
    ),
    "texts that are added up": (
        ["size, rows = '1.5', ['2', '3']", "sum(row for row in rows) * 2"],
        "sum(int(row) for row in rows) * 2",
    ),
    "two arguments in each other's place": (
        ["import math, random\nxs = [1, 2, 3]", "random.sample(2, xs)"],
        "random.sample(xs, 2)",
    ),
    "no parentheses": (
        [ORDERS, "1 - orders['revenue'].max"],
        "1 - orders['revenue'].max()",
    ),
    "square brackets": (
        ["import numpy as np", "np.argwhere[np.arange(2) > 0]"],
        "np.argwhere(np.arange(2) > 0)",
    ),
    "argument": (
        ["import numpy as np", "np.histogram([1, 2], biins=2)"],
        "np.histogram([1, 2], bins=2)",
    ),
    "a name without its ending": (
        [ORDERS + "orders.to_csv('orders.csv')", "pd.read_csv('orders')"],
        "pd.read_csv('orders.csv')",
    ),
    "what the removed interface filled in": (
        ["import pandas as pd\ns = pd.Series([1.0, None])", "s.fillna(method='ffill')"],
        "s.ffill()",
    ),
    "the part of the line that failed": (
        ["names, counts = ['a'], [1]", "','.join(names), ','.join(counts)"],
        "','.join(names), ','.join(map(str, counts))",
    ),
}


@pytest.mark.timeout(300)
@pytest.mark.requirement("MEAN-1")
def test_an_edit_that_keeps_the_meaning_is_a_fix(shell):
    wrong = {}
    for name, (cells, fixed) in MEANT.items():
        report = healed(shell, *cells)
        fix = report.fix
        filled = "fill_na" not in cells[-1] or (fix and "1 missing value is filled in." in fix.support)
        if fix is None or (fix.code, fix.lost) != (fixed, ()) or not filled:
            wrong[name] = str(report)
    assert wrong == {}


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
def test_an_assert_in_a_library_does_not_start_a_search(shell):
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
@pytest.mark.slow
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


@pytest.mark.requirement("MEAN-1", "FACE-12")
def test_an_edit_is_picked_by_its_number_on_the_card(shell, monkeypatch):
    report = healed(shell, "entry = {'points': '17'}", "entry['points'] + 3")
    put: list[str] = []
    monkeypatch.setattr(shell, "set_next_input", lambda text, replace: put.append(text), raising=False)

    def heal(*flags):
        shell.run_cell(" ".join(["%heal 3", *flags]), store_history=True).raise_error()

    for number, edit in enumerate(report.edits, 1):
        assert f"Edit {number}: {untick(edit.reason)}" in str(report)
        heal("--pick", str(number))
        assert put.pop() == edit.code
    assert "%heal --pick N" in str(report)
    with pytest.raises(HealError, match="Several edits are possible") as refused:
        heal("--apply")
    assert "--pick N takes 1 to 2" in refused.value.hint
    with pytest.raises(HealError, match="There is no edit 3 for"):
        heal("--pick", "3")


@pytest.mark.requirement("MEAN-5")
def test_the_report_leaves_out_a_change_that_other_cells_refute(shell, tmp_path, monkeypatch):
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

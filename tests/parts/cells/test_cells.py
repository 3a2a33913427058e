"""Run order: notebooks as lists of cells and runs, and advice."""

from __future__ import annotations

import dataclasses

import pytest
from cell_samples import Notebook, Step

from healkit.parts.cells.advice import advise
from healkit.parts.cells.cell_program import made_by, where_made
from healkit.parts.cells.notebook_file import CellRun, NotebookFile

LOAD, USE = "prices = [3, 4]", "total = sum(prices)"

#: name → cells of the file, runs (the last one fails), kind of advice, cells to run.
ADVISED: dict[str, tuple[list[str], list[Step], str, list[int]]] = {
    "a cell above was not run": ([LOAD, USE], [2], "not_run", [1]),
    "after a restart everything above it that it needs":
        (["base = 2", "unrelated = 1", "prices = [base, base]", USE], [4], "not_run", [1, 3]),
    "what the kernel has is not run again": (["base = 2", "prices = [base]", USE], [1, 3], "not_run", [2]),
    "the nearest definition above is the one": (["prices = None", LOAD, USE, "prices = 'later'"], [3], "not_run", [2]),
    "a redefinition needs the definition before it":
        ([LOAD, "prices = [p * 2 for p in prices]", USE], [3], "not_run", [1, 2]),
    "cells between that change the value belong to it":
        ([LOAD, "prices.append(5)", "other = []", "prices[0] = 1", USE], [5], "not_run", [1, 2, 4]),
    "all that the failed cell lacks, in the notebook's order":
        (["b = 2", "a = 1", "c = a + b"], [3], "not_run", [1, 2]),
    "a function's cell": (["def mean(v):\n    return sum(v) / len(v)", "mean([1])"], [2], "not_run", [1]),
    "what the function looks up when it is called":
        (["rate = 2", "def price(n):\n    return n * rate", "price(3)"], [3], "not_run", [1, 2]),
    "a name that a function of the kernel looks up":
        (["rate = 2", "def price(n):\n    return n * rate", "price(3)"], [2, 3], "not_run", [1]),
    "a function that the kernel has, and a name that it looks up and the kernel has not":
        (["rate = 2", "def price(n):\n    return n * rate", "n = 3", "price(n)"], [2, 4], "not_run", [1, 3]),
    "a class and its base":
        (["class Base:\n    pass", "class Item(Base):\n    pass", "Item()"], [3], "not_run", [1, 2]),
    "an import's cell": (["import math, json as js", "js.dumps(math.pi)"], [2], "not_run", [1]),
    "from … import … as": (["from math import sqrt as root", "root(4)"], [2], "not_run", [1]),
    "unpacking, with and walrus": (
        [
            "import io\n(a, *b), c = (1, 2, 3), 4",
            "with io.StringIO('x') as file:\n    text = file.read()",
            "if (n := len(text)) > 0:\n    pass",
            "print(b, c, text, n)",
        ],
        [4],
        "not_run",
        [1, 2, 3],
    ),
    "both ways of an if": (["if 1 > 2:\n    size = 1\nelse:\n    size = 2", "print(size)"], [2], "not_run", [1]),
    "try and its except":
        (["try:\n    import zzyzx as fast\nexcept ImportError:\n    fast = None", "print(fast)"], [2], "not_run", [1]),
    "match": (["match {'a': 1}:\n    case {'a': found}:\n        pass", "print(found)"], [2], "not_run", [1]),
    "a loop's variable": (["for row in [1, 2]:\n    last = row", "print(row, last)"], [2], "not_run", [1]),
    "annotated": (["limit: int = 3", "print(limit)"], [2], "not_run", [1]),
    "an annotation alone is no definition": (["limit = 3", "limit: int", "print(limit)"], [2, 3], "not_run", [1]),
    "under %%time": (["%%time\nprices = [1]", USE], [2], "not_run", [1]),
    "beside magics and shell lines": (["%matplotlib inline\n!ls\nprices = [1]", USE], [2], "not_run", [1]),
    "it stands further down": ([USE, LOAD], [1], "later", [2]),
    "further down, and what that needs": ([USE, "base = 1", "prices = [base]"], [1], "later", [2, 3]),
    "edited since it ran": ([LOAD, USE], [(1, "price = [3, 4]"), 2], "edited", [1]),
    "failed, edited since": ([LOAD, USE], [(1, "prices = [3, 4"), 2], "edited", [1]),
    "failed before defining it": (["rows = 1 / 0\nprices = [rows]", USE], [1, 2], "failed", []),
    "failed at the definition itself": (["prices = [1 / 0]", USE], [1, 2], "failed", []),
    "failed because of order itself: both are run": (["base = 2", "prices = [base]", USE], [2, 3], "failed", [1, 2]),
    "failed for a name that is there by now": (["base = 2", "prices = [base]", USE], [2, 1, 3], "failed", [2]),
    "a cell that is not Python": (["prices = [1,\nx = 2", USE], [1, 2], "failed", []),
    "deleted by hand": ([LOAD, "del prices", USE], [1, 2, 3], "removed", [1]),
    "deleted in a loop of a cell": ([LOAD, "for _ in range(1):\n    del prices", USE], [1, 2, 3], "removed", [1]),
    "its branch was not taken": (["if 1 > 2:\n    prices = [1]", USE], [1, 2], "conditional", []),
    "its loop had nothing to go through": (["for prices in []:\n    pass", USE], [1, 2], "conditional", []),
    "its function was not called":
        (["def load():\n    global prices\n    prices = [1]", USE], [1, 2], "conditional", []),
    "a branch that was not taken, and a sure cell above it":
        ([LOAD, "if 1 > 2:\n    prices = [1]", USE], [2, 3], "not_run", [1, 2]),
    "only inside of a function": (["def load():\n    prices = [1]\nload()", USE], [1, 2], "scope", []),
    "only inside of a class": (["class Shop:\n    prices = [1]", USE], [1, 2], "scope", []),
    "only inside of a comprehension": (["[prices for prices in [1]]", USE], [1, 2], "scope", []),
    "only inside of an except":
        (["try:\n    1 / 0\nexcept ZeroDivisionError as oops:\n    pass", "print(oops)"], [1, 2], "scope", []),
    "further down in the same cell": (["print(prices)\nprices = [1]"], [1], "own", []),
    "deleted in the same cell": (["prices = [1]\ndel prices\nprint(prices)"], [1], "removed", []),
    "its own branch was not taken": (["if 1 > 2:\n    prices = [1]\nprint(prices)"], [1], "own", []),
    "a cell that is no longer in the notebook": ([USE], ["prices = [1 / 0]", 1], "deleted", []),
    "everything from a module": (["from math import *", "print(sqrt(pi))"], [2], "star", [1]),
    "a module of the standard library": (["print(textwrap.dedent('  x'))"], [1], "import", [0]),
    "what everybody imports from there": (["Counter('abc')"], [1], "import", [0]),
    "a usual alias": (["np.zeros(3)"], [1], "import", [0]),
    "an older text of the failing function":
        (["def half(n):\n    return n / 2", "half(4)"], [(1, "def half(n):\n    return n / 0"), 2], "stale", [1]),
    "an older method": (
        ["class A:\n    def f(self):\n        return 1", "A().f()"],
        [(1, "class A:\n    def f(self):\n        return 1 / 0"), 2],
        "stale",
        [1],
    ),
    "a newer one between the cell that ran and the failing one": (
        ["def half(n):\n    return n / 0", "def half(n):\n    return n / 2", "half(4)"], [1, 3], "stale", [2]
    ),
    "an older text that asks for a name the new one does not":
        (["def half(n):\n    return n / 2", "half(4)"], [(1, "def half(n):\n    return n / two"), 2], "stale", [1]),
}  # fmt: skip

#: name → cells, runs. Nothing is advised: there is nothing to say, or what could be said would be wrong.
SILENT: dict[str, tuple[list[str], list[Step]]] = {
    "nothing defines it": (["print(zzyzx)"], [1]),
    "another failure": ([LOAD, "1 / 0"], [2]),
    "a key": ([LOAD, "{}['prices']"], [2]),
    "an attribute of the same name": ([LOAD, "(1).prices"], [2]),
    "a function's own variable": ([LOAD, "def f():\n    print(prices)\n    prices = 1\nf()"], [2]),
    "a name in a module":
        ([LOAD, "import types\nm = types.ModuleType('m')\nexec('def f(): return prices', vars(m))\nm.f()"], [2]),
    "the name is there by the time it fails": (["try:\n    x\nexcept NameError:\n    x = 1\n    raise"], [1]),
    "a variable of an outer function":
        ([LOAD, "def f():\n    def g():\n        return prices\n    g()\n    prices = 1\nf()"], [2]),
    "in a string or a comment only": (["# prices = 1\nnote = 'prices = 2'", USE], [1, 2]),
    "as a keyword argument or a key only": (["d = dict(prices=1)\nd = {'prices': 1}", USE], [1, 2]),
    "compared, not assigned": (["flag = 1\nprint(flag == 1)\nprices: list", USE], [1, 2]),
    "an attribute that is set": (["class A: pass\na = A()\na.prices = 1", USE], [1, 2]),
    "in a cell for another program": (["%%bash\nprices=3", USE], [1, 2]),
    "a variable that is called like a module": (["print(code)"], [1]),
    "a module's name asked for what it has not": (["string.shape"], [1]),
    "a name that the standard library has too, as a value": (["print(count + 1)"], [1]),
    "the function that failed is as the notebook has it": (["def half(n):\n    return n / 0", "half(4)"], [1, 2]),
    "its cell was edited elsewhere": (
        ["# now with a comment\ndef half(n):\n    return n / 0\nlimit = 3", "half(4)"],
        [(1, "def half(n):\n    return n / 0"), 2],
    ),
    "the function that failed is defined again below the cell":
        (["def half(n):\n    return n / 0", "half(4)", "def half(n):\n    return n / 2"], [1, 2]),
    "the function that failed is another one above its own cell":
        (["def half(n):\n    return n / 2", "def half(n):\n    return n / 0", "half(4)"], [2, 3]),
    "a cell that is only named in an augmented assignment": (["prices += 1"], [1]),
    "a raised NameError of one's own": ([LOAD, "raise NameError('prices is bad')"], [2]),
}  # fmt: skip


def told(cells: list[str], runs: list[Step], **more: object) -> Notebook:
    book = Notebook(cells, **more)
    for step in runs:
        book.run(step)
    return book


def test_the_advised_cells_are_the_needed_ones() -> None:
    wrong = []
    for name, (cells, runs, kind, steps) in ADVISED.items():
        book = told(cells, runs)
        advice = book.advice()
        if advice is None or (advice.kind, [step.number or 0 for step in advice.steps]) != (kind, steps):
            wrong.append((name, advice))
            continue
        assert advice.sentence.endswith("."), name
        assert ("then this cell again." in advice.todo) == bool(steps), name
        if steps and 0 not in steps and not book.follow(advice).ok:
            wrong.append((name, "after the advised cells the failed one does not run"))
        if kind in {"not_run", "later"}:
            without = told(cells, runs, ids=False).advice()
            if without is None or (without.kind, [step.number for step in without.steps]) != (kind, steps):
                wrong.append((f"{name}, without cell ids", without))
    assert wrong == []


def test_without_evidence_there_is_no_advice() -> None:
    advised = {name: told(cells, runs).advice() for name, (cells, runs) in SILENT.items()}
    assert [name for name, advice in advised.items() if advice is not None] == []


#: name → cells; the first that a cell can be moved above, or none. The first cell is run, and lacks `prices`.
MOVED: dict[str, tuple[list[str], list[int]]] = {
    "what stands too low": ([USE, LOAD], [2]),
    "with what it needs": ([USE, "base = 1", "other = 2", "prices = [base, 1]"], [2, 4]),
    "nothing that reads what a cell between changes": (["base = 1\n" + USE, "base += 1", "prices = [base]"], []),
    "nothing that binds what this cell binds": (["total = 1\n" + USE, "prices = [1]\ntotal = 0"], []),
    "nothing that a cell between binds too": ([USE, "prices = None", LOAD], [2]),
}  # fmt: skip


def test_a_cell_that_stands_too_low_is_moved_where_no_other_cell_changes_by_it() -> None:
    for name, (cells, moved) in MOVED.items():
        advice = told(cells, [1]).advice()
        assert advice is not None, name
        assert [step.number for step in advice.moves] == moved, name
        if moved:
            which = "cell 2" if len(moved) == 1 else "cells 2 and 4"
            assert advice.todo.endswith(f" Move {which} above this cell, so that Run All works too."), name


def test_a_file_saved_before_the_cell_ran_is_ignored() -> None:
    # The frontend has a newer text of the cell, and that one ran.
    book = told([LOAD, USE], [(1, "price = [3, 4]"), 2], saved_at=0)
    assert book.advice() is None
    stale = told(
        ADVISED["an older text of the failing function"][0],
        [(1, "def half(n):\n    return n / 0"), 2],
        saved_at=0,
    )
    assert stale.advice() is None


def test_an_unsaved_new_cell_counts_as_part_of_the_notebook() -> None:
    book = told([USE], ["prices = [1 / 0]", 1], saved_at=0)
    advice = book.advice()
    assert advice is not None
    assert advice.kind == "failed"


@pytest.mark.parametrize(
    ("runs", "kind", "labels"),
    [
        ([LOAD, "del prices", USE], "removed", ["In [1]"]),
        (["prices = [1 / 0]", USE], "failed", []),
        (["base", "base = 1", "prices = [base]\n1 / 0", "del prices", USE], "removed", []),
        ([USE], None, []),
        (["import this_is_not_there", USE], None, []),
    ],
)
def test_without_a_file_the_history_is_used(runs: list[Step], kind: str | None, labels: list[str]) -> None:
    advice = told([], runs).advice(notebook=None)
    assert (None if advice is None else advice.kind) == kind
    assert [step.label for step in (advice.steps if advice is not None else ())] == labels


def test_a_run_before_healkit_was_loaded_is_not_called_a_success() -> None:
    book = told([LOAD, USE], [2])
    before = [CellRun(LOAD, 1, None)]
    advice = book.advice()
    assert advice is not None
    seen = dataclasses.replace(book.case(), history=before)
    told_then = advise(seen)
    assert told_then is not None
    assert (told_then.kind, told_then.confidence) == ("failed", "likely")
    assert "before healkit was loaded" in told_then.sentence


def test_a_cell_of_an_earlier_kernel_is_remembered() -> None:
    book = told([USE], [1])
    asked = []

    def earlier(name: str) -> list[CellRun]:
        asked.append(name)
        return [CellRun("print(prices)", None, None), CellRun("x = 1\nprices = [x]", None, None)]

    advice = book.advice(earlier=earlier)
    assert asked == ["prices"]
    assert advice is not None
    assert (advice.kind, advice.steps[0].source) == ("deleted", "x = 1\nprices = [x]")
    assert "`prices = [x]`" in advice.sentence


def test_the_magic_that_deleted_the_name_is_shown() -> None:
    book = told([LOAD, USE], [1])
    del book.space["prices"]
    book.runs.append(CellRun("%reset -f", 2))
    book.run(2)
    advice = book.advice()
    assert advice is not None
    assert (advice.kind, advice.confidence) == ("removed", "sure")
    assert "`%reset -f` in In [2]" in advice.sentence


def test_similar_names_come_last_and_only_from_the_kernel() -> None:
    book = told([LOAD, "print(prizes)"], [1, 2])
    advice = book.advice(near=("prices", "print"))
    assert advice is not None
    assert (advice.kind, advice.confidence, advice.steps) == ("near", "guess", ())
    assert advice.sentence == "No cell of this notebook defines `prizes`. A similar name exists: `prices`."
    book = told([LOAD, "prizes = 1", "print(prizes)"], [1, 3])
    asked = book.advice(near=("prices",))
    assert asked is not None
    assert asked.kind == "not_run"


def test_a_module_that_is_not_installed_is_named_and_not_offered() -> None:
    advice = told(["np.zeros(3)"], [1]).advice(installed=lambda _: False)
    assert advice is not None
    assert advice.steps == ()
    assert "not installed" in advice.sentence


def test_a_cell_with_an_undefined_name_is_named_and_not_offered() -> None:
    advice = told(["prices = [nobody_knows]", USE], [2]).advice()
    assert advice is not None
    assert advice.steps == ()
    assert "Cell 1 itself reads `nobody_knows`, which no cell defines." in advice.sentence


def test_a_cell_that_lacks_an_import_gets_it_first() -> None:
    advice = told(["prices = [textwrap.dedent('x')]", USE.replace("sum", "len")], [2]).advice()
    assert advice is not None
    assert [step.source for step in advice.steps] == ["import textwrap", "prices = [textwrap.dedent('x')]"]


def test_cells_in_a_circle_come_to_an_end() -> None:
    advice = told(["a = b + 1", "b = a + 1", "print(a)"], [3]).advice()
    assert advice is not None
    assert len(advice.steps) <= 2


TEXTS = [
    "",
    "   ",
    "\x00",
    "%%",
    "!",
    "def f(",
    "x = = 1",
    "é = 1\n" * 10,
    "(" * 500,
    "\t\tif x:\n  y",
    "%time",
    "?x",
    "x?",
]


def test_no_text_raises() -> None:
    for source in TEXTS:
        book = told([source, USE], [2])
        advice = book.advice()
        assert advice is None or advice.steps == (), source
        strange = CellRun(source, 9, False, "c1", 9.0, 1, "NameError", "prices")
        advise(dataclasses.replace(book.case(), failed=strange, notebook=NotebookFile((), None)))


@pytest.mark.requirement("MEAN-4")
@pytest.mark.parametrize(
    ("cells", "made"),
    [
        (["a = 1", "b = [a]", "b.append(2)", "other = 3"], [0, 1, 2]),
        (["b = [1]", "b = [2]", "a = 4"], [1]),
        (["b = [1]", "n = 1", "if n:\n    b = [2]"], [0, 1, 2]),
        (["def f():\n    return 1", "b = [f()]"], [1]),
        (["import math", "b = [math.pi]"], [1]),
        (["b = [1]", "%run other.py", "b = [*b, 2]"], [0, 2]),
        (["b = [1]\n%time b.append(2)"], []),
        (["b = [1]", "b = [*b, 2]; 1 / 0"], []),
    ],
)
def test_the_cells_that_made_a_value_are_those_that_changed_it_and_what_it_was_made_of(cells, made):
    space, history = {"__name__": "__main__"}, []
    for count, text in enumerate(cells, 1):
        try:
            exec("".join(line for line in text.splitlines(keepends=True) if line[0] != "%"), space)
        except ZeroDivisionError:
            history.append(CellRun(text, count, ok=False))
        else:
            history.append(CellRun(text, count))
    found = made_by(CellRun("print(b)", len(cells) + 1), history, space)
    assert [run.count - 1 for run in found] == made


@pytest.mark.requirement("MEAN-4")
@pytest.mark.parametrize(
    ("cells", "value", "told"),
    [
        (["b = [3]", "b = b.sort()"], None, "In [2], line 1 made it `None`: `b = b.sort()`."),
        (["b = [3]", "\nb = b[0]"], 3, "In [2], line 2 gave `b` this value: `b = b[0]`."),
        (["b = [3]"], [3], ""),  # nothing had its name before
        (["b = None", "b.append(3)"], None, ""),
        (["if a:\n    b = None", "del b"], None, ""),
    ],
)
def test_the_line_that_made_a_value_is_named_where_it_surely_did(cells, value, told):
    history = [CellRun(text, count) for count, text in enumerate(cells, 1)]
    failing = CellRun("b.head()", len(cells) + 1)
    assert where_made("b", value, failing, history) == told
    assert where_made("b", value, dataclasses.replace(failing, source="b = 1\nb.head()"), history) == ""

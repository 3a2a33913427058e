"""pytest plugin, in real runs of pytest with real workers."""

from __future__ import annotations

import itertools
import json
import tomllib
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
MODULE = "healkit.faces.pytest_plugin"
#: How a run finds the plugin where the installed healkit does not name it yet.
FOUND = [] if [*entry_points(group="pytest11", name="healkit")] else ["-p", MODULE]
#: A module that cannot be imported in pytest's own process: that would be a run without restrictions.
SHOP = '''
import asyncio, sys
assert "pytest" not in sys.modules

def total(prices):
    """Add prices.

    >>> total([1, 2])
    3
    >>> total([1, "2"])
    Traceback (most recent call last):
    TypeError: unsupported operand type(s) for +: 'int' and 'str'
    >>> for price in range(2): price
    0
    1
    >>> async def main(): return total([4])
    >>> asyncio.run(main())
    4
    >>> m.pi, __name__  # doctest: +ELLIPSIS
    (3.14..., 'shop.prices')
    >>> 1 / 0  # doctest: +SKIP
    """
    return sum(prices)

class Cart:
    def first(self):
        """
        >>> Cart().first()
        1
        """
        return {}["price"]

    @property
    def size(self):
        """
        >>> Cart().size
        2
        >>> print("not reached")
        """
        return 1
'''
WAITS = """import sys; assert "pytest" not in sys.modules
def wait():
    '''
    >>> import time; time.sleep(600)
    '''
def later():
    '''
    >>> 1
    1
    '''
"""
NAMES = """
import math, pytest

@pytest.fixture(autouse=True)
def names(doctest_namespace):
    doctest_namespace["m"] = math
"""
LIMITED = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "waits.wait":
            item.add_marker(pytest.mark.timeout(4))
"""
LOADED = """
import sys

def pytest_unconfigure():
    print(sorted(name for name in sys.modules if name.startswith("healkit")))
"""


def book(pytester: pytest.Pytester, name: str, *sources: str) -> None:
    """Write a notebook with these code cells."""
    about = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**about, "source": source} for source in sources]
    content = {"cells": cells, "nbformat": 4, "nbformat_minor": 4, "metadata": {}}
    (pytester.path / f"{name}.ipynb").write_text(json.dumps(content))


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Run pytest with the plugin in a process of its own."""
    return pytester.runpytest_subprocess(*FOUND, *words, timeout=115)


def failed(result: pytest.RunResult) -> list[str]:
    """Return the tests that the summary calls failed."""
    return [line.split()[1] for line in result.outlines if line.startswith("FAILED ")]


@pytest.mark.requirement("FACE-13")
def test_a_notebook_is_a_test_whose_failure_names_cell_line_and_cause(pytester: pytest.Pytester) -> None:
    book(
        pytester, "fails", "rows = [1]", "total = 0\nfor n in range(2):\n    total += rows[n]", "print(total)"
    )
    book(pytester, "good", "x = 1", "x + 1")
    book(pytester, "syntax", "x = (1")
    book(pytester, "without_cells")
    (pytester.path / "text.ipynb").write_text("hello")
    result = run(pytester, "--healkit", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "healkit: notebooks and doctests run restricted; test functions and conftest.py do not",
            "* [[]notebook] fails.ipynb *",
            "cell 2 (In [[]2]), line 3: IndexError: list index out of range",
            "*total += rows[[]n]",
            "*what *'rows' has 1 item*",
            "* [[]notebook] syntax.ipynb *",
            "cell 1 (In [[]1]), line 1: SyntaxError*",
            "*text.ipynb' is not a notebook.*",
            "FAILED fails.ipynb::notebook - Failed: cell 2 (In [[]2]), line 3: IndexError*",
        ]
    )
    cases = {case.get("classname"): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")}
    assert [name for name, case in cases.items() if case.find("failure") is None] == [
        "good.ipynb",
        "without_cells.ipynb",
    ]


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_the_fix_is_shown_with_its_evidence_and_not_written(pytester: pytest.Pytester) -> None:
    book(pytester, "rows", "rows = [1, 2]", "rows.append(3)\nrows.add(4)\nlen(rows)", "print(rows)")
    before = (pytester.path / "rows.ipynb").read_bytes()
    result = run(pytester, "--healkit-heal")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "cell 2 (In [[]2]), line 2: AttributeError: 'list' object has no attribute 'add'",
            "*seen *Runs, and gives 4. *In a complete run, the notebook got further with it.",
            "    -rows.add(4)",
            "    +rows.append(4)",
        ]
    )
    assert (pytester.path / "rows.ipynb").read_bytes() == before


@pytest.mark.slow
def test_tests_are_chosen_stopped_and_run_again_as_others_are(pytester: pytest.Pytester) -> None:
    for name in ("first", "second", "third"):
        book(pytester, name, "1 / 0")
    once = run(pytester, "--healkit", "-x", "-k", "second or third")
    once.assert_outcomes(failed=1, deselected=1)
    assert failed(once) == ["second.ipynb::notebook"]
    again = run(pytester, "--healkit", "--lf")
    again.assert_outcomes(failed=1)
    assert failed(again) == ["second.ipynb::notebook"]


@pytest.mark.slow
def test_without_the_option_nothing_is_collected_and_nothing_is_loaded(pytester: pytest.Pytester) -> None:
    book(pytester, "good", "1")
    pytester.makeconftest(LOADED)
    result = run(pytester, "-s")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    own = ["", ".core", ".core.own_imports", ".faces", ".faces.pytest_plugin", ".package"]
    assert result.outlines[-1] == str([f"healkit{name}" for name in own])


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_a_modules_doctests_run_in_a_worker_with_doctests_own_rules(pytester: pytest.Pytester) -> None:
    package = pytester.mkpydir("shop")
    (package / "__init__.py").write_text("import sys\nassert 'pytest' not in sys.modules\n")
    (package / "prices.py").write_text(SHOP)
    pytester.makeconftest(NAMES)
    result = run(pytester, "--healkit", "--doctest-modules")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "line 28: KeyError: 'price'",
            "028         >>> Cart().first()",
            "UNEXPECTED EXCEPTION: KeyError*",
            '  File "<doctest shop.prices.Cart.first[[]0]>", line 1, in <module>',
            '  File "*prices.py", line 31, in first',
            "*prices.py:28: UnexpectedException",
            "*what *The key 'price' does not exist*",
            "*raised *line 31 of *prices.py, in first",
            "line 36: expected 2, got 1",
            "Expected:",
            "    2",
            "Got:",
            "    1",
            "FAILED shop/prices.py::shop.prices.Cart.size - line 36: expected 2, got 1",
        ]
    )
    result.stdout.no_fnmatch_line("*not reached*")
    result.stdout.no_fnmatch_line("*pytest_items.py*")


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_an_example_reaches_no_private_file_no_network_and_no_value_of_a_fixture(
    pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory
) -> None:
    private = tmp_path_factory.mktemp("private") / "key"
    private.write_text("sesame")
    (pytester.path / "beside.csv").write_text("1")
    guide = f"""
>>> open("beside.csv").read()
'1'
>>> open({str(private)!r}).read()
>>> import urllib.request
>>> urllib.request.urlopen("http://192.0.2.1", timeout=3)
"""
    (pytester.path / "guide.md").write_text(guide)
    pytester.maketxtfile(test_fixture=">>> getfixture('tmp_path')\n")
    result = run(
        pytester, "--healkit", "--doctest-glob=*.md", "--doctest-glob=*.txt", "--doctest-continue-on-failure"
    )
    # In CI, pytest repeats the whole message of a failure in its summary.
    shown = itertools.takewhile(lambda line: "short test summary info" not in line, result.outlines)
    titles = [line for line in shown if line.startswith("line ")]
    assert [line.split(":")[0] for line in titles] == ["line 4", "line 6"]
    assert "sesame" not in result.stdout.str()
    only = "Only modules go to a restricted worker, no other value of a fixture."
    result.stdout.fnmatch_lines([only, "FAILED guide.md::guide.md - line 4: *"])


@pytest.mark.slow
def test_two_processes_share_the_tests(pytester: pytest.Pytester) -> None:
    book(pytester, "fails", "1 / 0")
    pytester.maketxtfile(test_guide=">>> 1 + 1\n3\n")
    result = run(pytester, "--healkit", "-n", "2")
    result.assert_outcomes(failed=2)
    told = ["cell 1 (In [[]1]), line 1: ZeroDivisionError: division by zero", "line 1: expected 3, got 2"]
    result.stdout.fnmatch_lines_random(told)


@pytest.mark.slow
def test_a_limit_of_healkit_ends_a_cell_and_an_example(pytester: pytest.Pytester) -> None:
    book(pytester, "endless", "import time\ntime.sleep(600)")
    pytester.makepyfile(waits=WAITS)
    result = run(pytester, "--healkit", "--doctest-modules", "-ohealkit_timeout=2")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "cell 1 (In [[]1]), line 2: TimeoutError: the cell was still running after 2 s",
            "line 4: TimeoutError: the example was still running after 2 s",
        ]
    )


@pytest.mark.slow
def test_a_limit_of_pytest_timeout_ends_an_example_and_the_next_test_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(waits=WAITS)
    pytester.makeconftest(LIMITED)
    result = run(pytester, "--healkit", "--doctest-modules", "waits.py")
    result.assert_outcomes(passed=1, failed=1)
    assert failed(result) == ["waits.py::waits.wait"]
    result.stdout.fnmatch_lines(["*Timeout (>4.0s)*"])


@pytest.mark.slow
@pytest.mark.requirement("FACE-13")
def test_without_a_boundary_nothing_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALKIT_ISOLATION", "process")
    mark = pytester.path / "ran"
    book(pytester, "marks", f"open({str(mark)!r}, 'w')")
    pytester.maketxtfile(test_marks=f">>> file = open({str(mark)!r}, 'w')\n")
    result = run(pytester, "--healkit")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["HEALKIT_ISOLATION='process' is not a boundary*"])
    assert not mark.exists()


def test_pytest_finds_the_plugin_where_healkit_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"healkit": MODULE}

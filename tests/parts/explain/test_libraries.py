"""Libraries without rows of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from library_failures import Example, run

from healkit.parts.explain.explanation import MatchedFailure, explain
from healkit.parts.explain.facts.scene import near_files
from healkit.parts.explain.fixes import explained, proposals
from healkit.parts.explain.site import Site
from healkit.parts.explain.source import Source

FRAME = 'import pandas as pd\nrivers = pd.DataFrame({"name": ["Elbe"], "km": [1094]})\n'


def fixes(code: str, folder: Path) -> list[str]:
    """Return the last lines of what the fixes make of code that fails, likeliest first."""
    ran = run(Example("", "", "", code), folder)
    site = Site(Source(code), "", MatchedFailure(ran.failure), given=ran.names)
    made = [(fix.priority - one.less, text) for fix, one, text in proposals(site) if not one.guard]
    return [text.strip().splitlines()[-1] for _, text in sorted(made, key=lambda item: -item[0])]


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ('rivers.append({"name": "Oder", "km": 866}, ignore_index=True)',
         'pd.concat([rivers, pd.DataFrame([{"name": "Oder", "km": 866}])], ignore_index=True)'),
        ("rivers.append(rivers)", "pd.concat([rivers, rivers])"),
        ("rivers.append([rivers, rivers])", "pd.concat([rivers, *[rivers, rivers]])"),
        ('rivers.append([{"name": "Oder", "km": 866}])', 'pd.concat([rivers, pd.DataFrame([{"name": "Oder", "km": 866}])])'),
        ('rivers["km"].append(rivers["km"])', 'pd.concat([rivers["km"], rivers["km"]])'),
        ('rivers["km"].iteritems()', 'rivers["km"].items()'),
    ],
)  # fmt: skip
def test_a_removed_method_is_written_as_what_does_the_same(line: str, right: str, tmp_path: Path) -> None:
    found = fixes(f"{FRAME}{line}\n", tmp_path)
    assert found[0] == right
    assert not [one for one in found if ".add(" in one or ".apply(" in one]
    exec(compile(f"{FRAME}{right}", "right", "exec"), {})


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nnp.in1d([1], [1, 2])\n",
        pytest.param("import scipy.stats\nscipy.stats.binom_test(3, 10)\n", marks=pytest.mark.slow),
        pytest.param("import networkx as nx\nnx.to_numpy_matrix(nx.path_graph(3))\n", marks=pytest.mark.slow),
        "import pandas as pd\npd.Int64Index([1])\n",
        pytest.param("from sklearn.metrics import plot_confusion_matrix\n", marks=pytest.mark.slow),
        f"{FRAME}rivers.swapaxes(0, 1)\n",
    ],
)
def test_a_removed_name_is_never_answered_with_a_similar_one(code: str, tmp_path: Path) -> None:
    ran = run(Example("", "", "", code), tmp_path)
    assert ran.failure.near == []
    assert "Did you mean" not in explain(ran.failure).to_text()
    wrong = ("union1d", "binomtest", "to_numpy_array", "Int64Dtype", "confusion_matrix", "swaplevel")
    assert not [one for one in fixes(code, tmp_path) if any(f".{name}" in one for name in wrong)]


@pytest.mark.slow
def test_a_successor_with_other_arguments_is_named_and_not_written(tmp_path: Path) -> None:
    code = "import networkx as nx\nnx.to_numpy_matrix(nx.path_graph(3))\n"
    ran = run(Example("", "", "", code), tmp_path)
    assert "`networkx.to_numpy_array`" in explain(ran.failure).why
    assert fixes(code, tmp_path) == []


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("from dataclasses import dataclass\n@dataclass(kw_only=True)\nclass Cup:\n    size: int\n    full: bool\nCup(3, True)\n",
         "Cup(size=3, full=True)"),
        ("def plot(data=None, *, x=None, y=None):\n    return x, y\nplot('a', 'b', data=[1])\n", "plot(x='a', y='b', data=[1])"),
        pytest.param("from sklearn.metrics import confusion_matrix\nconfusion_matrix([1, 0], [1, 1], [0, 1])\n",
                     "confusion_matrix([1, 0], [1, 1], labels=[0, 1])", marks=pytest.mark.slow),
        ("import duckdb\nduckdb.sql('create or replace table tides(harbour int)')\nduckdb.sql('select harbor from tides')\n",
         "duckdb.sql('select harbour from tides')"),
        ("from sqlalchemy import *\nbirds = Table('birds', MetaData(), Column('species', String))\nselect(birds.c.specis)\n",
         "select(birds.c.species)"),
        ("import polars as pl\nlake = pl.DataFrame({'depth': [3]})\nlake.sort('depth', reverse=True)\n",
         "lake.sort('depth', descending=True)"),
        ("import pandas as pd\nlake = pd.DataFrame({'day': [1], 'depth': [3]})\nlake.pivot_table(index='day', valuse='depth')\n",
         "lake.pivot_table(index='day', values='depth')"),
        ("max(['aa', 'b'], keyy=len)\n", "max(['aa', 'b'], key=len)"),
        ("import pandas as pd\npd.read_csv('lakes.csv', separator=';')\n", "pd.read_csv('lakes.csv', sep=';')"),
        ("import pandas as pd\nlake = pd.DataFrame({'kind': ['a']})\nlake['kind'].map[{'a': 1}]\n",
         "lake['kind'].map({'a': 1})"),
        ("import polars as pl\nlakes = pl.DataFrame({'lake_id': [1]})\nkm = pl.DataFrame({'lake': [1], 'km': [2]})\nlakes.join(km, on='lake')\n",
         "lakes.join(km, left_on='lake_id', right_on='lake')"),
        ("import pandas as pd\nlake = pd.DataFrame({'depth': [3]})\nlake.order_by('depth')\n",
         "lake.sort_values('depth')"),
    ],
)  # fmt: skip
def test_the_live_object_names_what_is_meant(code: str, right: str, tmp_path: Path) -> None:
    assert fixes(code, tmp_path)[:1] == [right]


def test_a_column_is_not_offered_for_a_keyword_or_another_text(tmp_path: Path) -> None:
    for call in ("draw(rivers, km_unit=3)", 'draw(rivers, bins="many")', 'draw(rivers, bins="kms")'):
        code = f"{FRAME}def draw(data, bins=None):\n    raise ValueError(f'{{bins!r}} is not a valid estimator')\n{call}\n"
        assert not [one for one in fixes(code, tmp_path) if '"km"' in one]


@pytest.mark.parametrize(
    ("code", "what", "fix"),
    [
        ("raise RuntimeError('`melt` was removed in 2.0; use `unpivot` instead')", "`melt` was removed in 2.0", "use `unpivot` instead"),
        ("raise KeyError(\"not all values found in index 'lat'. Try method='nearest'.\")", "Not all values found in index 'lat'", ""),
        ("raise NotImplementedError('`interp2d` was removed in 1.14.')", "`interp2d` was removed in 1.14.", ""),
    ],
)  # fmt: skip
def test_an_explanation_has_a_librarys_own_message_and_advice(
    code: str, what: str, fix: str, tmp_path: Path
) -> None:
    said = explained(run(Example("", "", "", code), tmp_path).failure)
    assert what in said.what
    assert said.fix == fix


def test_reading_a_failure_does_not_run_code_of_the_users_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "class Own:\n    columns = property(lambda self: print('ran'))\n    def __getattr__(self, name):\n"
        "        raise AttributeError(name)\nown = Own()\nown.colums\n"
    )
    ran = run(Example("", "", "", code), tmp_path)
    assert ran.failure.facts.get("about") != "name_similar"
    assert capsys.readouterr().out == ""


def test_a_removed_function_of_numpy_keeps_what_it_did_to_the_type(tmp_path: Path) -> None:
    assert fixes("import numpy as np\nnp.asfarray([1, 2])\n", tmp_path) == ["np.asarray([1, 2], dtype=float)"]


@pytest.mark.parametrize(
    ("line", "why", "right"),
    [
        pytest.param(
            "OneHotEncoder(sparse=False)", "`sparse` was renamed to `sparse_output`", "OneHotEncoder(sparse_output=False)",
            marks=pytest.mark.slow),
        pytest.param(
            "AdaBoostClassifier(base_estimator=None)", "`base_estimator` was renamed to `estimator`.",
            "AdaBoostClassifier(estimator=None)", marks=pytest.mark.slow),
        ("draw(colour=3)", "The argument `colour` was renamed `hue`.", "draw(hue=3)"),
        ("draw(shade=3)", "*shade* is no longer supported. Use `hue` instead.", None),
        ("draw(tone=3)", "", None),
        ("draw(width=3)", "", None),
    ],
)  # fmt: skip
def test_what_the_documentation_says_of_a_name_is_quoted(
    line: str, why: str, right: str | None, tmp_path: Path
) -> None:
    of = {"OneHotEncoder": "preprocessing", "AdaBoostClassifier": "ensemble"}.get(line.partition("(")[0])
    code = (
        f"{f'from sklearn.{of} import *' if of else ''}\ndef draw(hue=1):\n"
        '    """Draw. The argument `colour` was renamed `hue`. *shade* is no longer supported. Use `hue` instead.\n\n'
        '    The old name was replaced: use `width` instead. Its tone was removed.\n    """\n'
        f"{line}\n"
    )
    said = explained(run(Example("", "", "", code), tmp_path).failure)
    named = line.partition("(")[0]
    if why:
        assert said.why == f"The documentation of `{named}` says: {why}"
    else:
        assert "documentation" not in said.to_text()
    if right is not None:
        assert fixes(code, tmp_path)[0] == right
        failure = run(Example("", "", "", code), tmp_path).failure
        assert MatchedFailure(failure).edits[0].kind == "migrates"


def test_reading_documentation_does_not_run_the_users_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "class Doc:\n    def __get__(self, one, owner):\n        print('ran')\n        return '`mean` was removed'\n"
        "    __str__ = __eq__ = __get__\n"
        "class Own:\n    __slots__ = ()\n    def __eq__(self, other):\n        print('ran')\n"
        "Own.__doc__ = Doc()\nOwn().mean\n"
    )
    ran = run(Example("", "", "", code), tmp_path)
    assert ran.failure.ename == "AttributeError"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("wanted", "names", "near"),
    [
        ("votes.json", ["dates.json", "notes.json", "people.csv"], []),
        ("votes.json", ["config.json"], []),
        ("votes.json", ["config.json", "vote.json"], ["vote.json"]),
        ("sales.csv", ["sales_2024.csv", "notes.txt"], ["sales_2024.csv"]),
        ("sales.csv", ["sales_2024.csv", "sales_2023.csv"], []),
        ("sales_2023.csv", ["sales_2024.csv"], []),
        ("report-sales.csv", ["Sales_Report.csv"], ["Sales_Report.csv"]),
        ("train.csv", ["test.csv"], []),
        ("Sales.csv", ["sales.csv", "sale.csv"], ["sales.csv", "sale.csv"]),
        ("sales.csv", ["sales.xlsx", "x.csv"], ["sales.xlsx"]),
        ("prices.cvs", ["prices.csv"], ["prices.csv"]),
        (".env", ["env.txt", ".gitignore"], []),
        ("", ["a.csv"], []),
    ],
)
def test_an_ending_alone_makes_no_file_the_missing_one(
    wanted: str, names: list[str], near: list[str]
) -> None:
    assert near_files(wanted, names) == near


def test_a_missing_file_is_found_one_folder_off_and_never_by_its_ending(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in ("dates.json", "work/notes.json", "lakes_of_two.xlsx"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "votes").mkdir()
    read = "import pandas as pd\npd.read_{}({!r})\n"
    for path in ("../votes.json", "votes.json"):
        code = f"import os\nos.chdir('work')\nopen({path!r})\n"
        ran = run(Example("", "", "", code), tmp_path)
        assert ran.failure.near == []
        assert fixes(code, tmp_path) == []
    (tmp_path / "votes" / "votes.json").write_text("{}")
    ran = run(Example("", "", "", "import os\nos.chdir('work')\nopen('../votes.json')\n"), tmp_path)
    assert ran.failure.near == ["../votes/votes.json"]
    ran = run(Example("", "", "", read.format("csv", "lakes_of_two.csv")), tmp_path)
    assert ran.failure.near == ["lakes_of_two.xlsx"]
    assert fixes(read.format("csv", "lakes_of_two.csv"), tmp_path) == []  # another format is another file

"""Fixes of tables: variations of each mistake."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
import pytest
from failing_tools import case_of, declared, run

from healkit.core.crossing import values
from healkit.parts.heal.advisors.simple import RulesAdvisor
from healkit.parts.heal.reach import added_reach

df = pd.DataFrame
#: What fails, its argument, the code, the mistake in it, and what is right.
VARIATIONS = [
    ("append dict in loop", [{"x":1},{"x":2}], "out = pd.DataFrame({'x': [0]})\nfor row in a:\n    out = out.append(row, ignore_index=True)\nreturn out", 'out.append(row, ignore_index=True)', 'pd.concat([out, pd.DataFrame([row])], ignore_index=True)'),
    ("merge left_on", df({"k": [1,2],"v": [3,4]}), "b = pd.DataFrame({'id': ['1','2'], 'w': [5,6]})\nreturn pd.merge(a, b, left_on='k', right_on='id')['w'].tolist()", 'pd.merge(a, b,', "pd.merge(a, b.astype({'id': int}),"),
    ("merge two keys", df({"k": [1,2],"d": ['x','y'],"v": [3,4]}), "b = pd.DataFrame({'k': ['1','2'], 'd': ['x','y'], 'w': [5,6]})\nreturn a.merge(b, on=['k','d'])['w'].tolist()", 'merge(b,', "merge(b.astype({'k': int}),"),
    ("merge text not number", df({"k": ['C1','2'],"v": [3,4]}), "b = pd.DataFrame({'k': [1,2], 'w': [5,6]})\nreturn a.merge(b, on='k')['w'].tolist()", 'merge(b,', "merge(b.astype({'k': str}),"),
    ("np.int", ["1","2"], 'return np.array(a).astype(np.int).tolist()', "np.int", 'int'),
    ("np.object", [1,2], 'x = np.array(a, dtype=np.object)\nreturn x.tolist()', "np.object", 'object'),
    ("np.in1d", [1,2], 'return np.in1d(a, [2, 3]).tolist()', 'in1d', 'isin'),
    ("np.product", [3,2], 'return int(np.product(a))', 'product', 'prod'),
    ("np.NaN", [3.0,2.0], 'x = pd.Series(a)\nx[0] = np.NaN\nreturn int(x.isna().sum())', 'NaN', 'nan'),
    ("np.trapz", [3.0,2.0], 'return float(np.trapz(a))', 'trapz', 'trapezoid'),
    ("chf", df({"p": ["CHF 1200","CHF 80"]}), "return a['p'].astype(float).sum()", "a['p']", "a['p'].str.replace('CHF ', '')"),
    ("dollars", df({"p": ["$1,200.50","$80"]}), "return a['p'].astype(float).sum()", "a['p']", "a['p'].str.replace(r'[$,]', '', regex=True)"),
    ("percent", df({"p": ["12%","8%"]}), "return a['p'].astype(float).sum()", "a['p']", "a['p'].str.rstrip('%')"),
    ("int thousands", df({"p": ["1,200","8"]}), "return int(a['p'].astype(int).sum())", "a['p']", "a['p'].str.replace(',', '')"),
    ("to_numeric thousands", df({"p": ["1,200","8"]}), "return int(pd.to_numeric(a['p']).sum())", "a['p']", "a['p'].str.replace(',', '')"),
    ("apply float", df({"p": ["1,200","8"]}), "return a['p'].apply(float).sum()", "a['p']", "a['p'].str.replace(',', '')"),
    ("n/a coerced", df({"p": ["12","n/a","8"]}), "return pd.to_numeric(a['p']).sum()", "(a['p'])", "(a['p'], errors='coerce')"),
    ("three conditions", df({"x": [1,5,9],"y": [2,2,3],"z": ["p","q","q"]}), "return a[a['x'] > 2 & a['y'] < 3 & a['z'] == 'q']['x'].tolist()", "a['x'] > 2 & a['y'] < 3 & a['z'] == 'q'", "(a['x'] > 2) & (a['y'] < 3) & (a['z'] == 'q')"),
    ("or condition", df({"x": [1,5,9],"z": ["p","q","q"]}), "return a.loc[a.x < 2 | a.z == 'q', 'x'].tolist()", "a.x < 2 | a.z == 'q'", "(a.x < 2) | (a.z == 'q')"),
    ("text condition first", df({"x": [1,5,9],"z": ["p","q","q"]}), "keep = a['z'] == 'q' & a['x'] > 5\nreturn a[keep]['x'].tolist()", "a['z'] == 'q' & a['x'] > 5", "(a['z'] == 'q') & (a['x'] > 5)"),
    ("unstack dup", df({"r": ['a','a'],"c": ['x','x'],"v": [1,2]}), "t = a.set_index(['r','c'])['v'].unstack()\nreturn int(t.loc['a','x'])", "a.set_index(['r','c'])['v'].unstack()", "a.groupby(['r','c'])['v'].sum().unstack()"),
    ("pivot positional values", df({"r": ['a','b'],"c": ['x','x'],"v": [1,2]}), "return a.pivot('r','c',values='v')['x'].tolist()", "'r','c'", "index='r', columns='c'"),
    ("agg dict", df({"g": ['a','a'],"units": [1,2]}), "return a.groupby('g').agg({'unit': 'sum'})['unit'].tolist()", "'unit'", "'units'"),
    ("concat axis", df({"x": [1,2]}), "b = pd.DataFrame({'y':[3,4]})\nreturn pd.concat(a, b, axis=1).shape[1]", 'a, b, axis', '[a, b], axis'),
    ("np.vstack", np.array([1,2]), 'return np.vstack(a, a).tolist()', 'a, a', '[a, a]'),
    ("np.zeros", 2, 'return np.zeros(a, 3).tolist()', 'a, 3', '(a, 3)'),
    ("if series", df({"x": [1,2]}), "if a['x'] > 1:\n    return 'some'\nreturn 'none'", "a['x'] > 1:", "(a['x'] > 1).any():"),
    ("if frame", df({"x": [1,2]}), 'if a:\n    return len(a)\nreturn 0', 'if a:', 'if not a.empty:'),
    ("def apply", df({"x": [1,2],"y": [3,4]}), "def add(row):\n    return row['x'] + row['y']\nreturn a.apply(add).tolist()", 'add)', 'add, axis=1)'),
    ("apply attr", df({"x": [1,2],"y": [3,4]}), 'return a.apply(lambda r: r.x + r.y).tolist()', 'r.y)', 'r.y, axis=1)'),
    ("drop list", df({"x": [1,2],"y": [3,4]}), "return a.drop(['y']).shape[1]", "(['y'])", "(columns=['y'])"),
    ("sort order", pd.Series([3,1]), 'return a.order().tolist()', 'order', 'sort_values'),
    ("ix", df({"x": [1,2]}), "return int(a.ix[1, 'x'])", "ix", 'loc'),
    ("weekofyear", pd.Series(pd.to_datetime(["2024-03-01"])), 'return a.dt.weekofyear.tolist()', 'dt.weekofyear', 'dt.isocalendar().week'),
    ("freq H", 3, "return pd.date_range('2024-01-01', periods=a, freq='H').hour.tolist()", "'H'", "'h'"),
    ("freq 2H", pd.Series([1,2,3], index=pd.date_range('2024-01-01', periods=3, freq='h')), "return a.resample('2H').sum().tolist()", "'2H'", "'2h'"),
    ("freq T", pd.Series([1,2,3], index=pd.date_range('2024-01-01', periods=3, freq='min')), "return a.resample('2T').sum().tolist()", "'2T'", "'2min'"),
    ("Y freq", pd.Series([1,2], index=pd.to_datetime(['2024-01-01','2025-01-01'])), "return a.resample('A').sum().tolist()", "'A'", "'YE'"),
    ("split expand", pd.Series(["a b","c d"]), "return a.str.split(' ', 1)[0]", "' ', 1", "' ', n=1"),
    ("replace method", pd.Series([1.0,None,3.0]), "return a.fillna(method='bfill').tolist()", "fillna(method='bfill')", 'bfill()'),
    ("pad", pd.Series([1.0,None,3.0]), 'return a.pad().tolist()', "pad", 'ffill'),
    ("chained not in", df({"x": ['a','b']}), "bad = ['a']\nreturn a[a['x'] not in bad]['x'].tolist()", "a['x'] not in bad", "~a['x'].isin(bad)"),
    ("str + num", df({"n": [1,2]}), "a['l'] = 'No. ' + a['n']\nreturn a['l'].tolist()", "+ a['n']", "+ a['n'].astype(str)"),
    ("text * num", df({"n": ["1","2"]}), "return (a['n'] - 1).tolist()", "a['n']", "pd.to_numeric(a['n'])"),
    ("dayfirst", df({"d": ["01.02.2024","13.02.2024"]}), "return pd.to_datetime(a['d']).dt.month.tolist()", "a['d']", "a['d'], dayfirst=True"),
    ("wrong format", df({"d": ["2024-02-01","2024-03-01"]}), "return pd.to_datetime(a['d'], format='%d.%m.%Y').dt.month.tolist()", "'%d.%m.%Y'", "'%Y-%m-%d'"),
    ("date year", df({"d": pd.to_datetime(["2024-02-01"])}), "return a['d'].year.tolist()", '.year', '.dt.year'),
    ("strftime", df({"d": pd.to_datetime(["2024-02-01"])}), "return a['d'].strftime('%Y').tolist()", '.strftime', '.dt.strftime'),
    ("contains", df({"d": ["abc","x"]}), "return a[a['d'].contains('b')].shape[0]", '.contains', '.str.contains'),
    ("series split", df({"d": ["a b","x y"]}), "return a['d'].split(' ').str[0].tolist()", '.split', '.str.split'),
    ("tz sub", df({"d": ["2024-01-01T00:00Z"]}), "t = pd.to_datetime(a['d'])\nreturn (pd.Timestamp('2024-01-02') - t).dt.days.tolist()", "pd.Timestamp('2024-01-02')", "pd.Timestamp('2024-01-02', tz='UTC')"),
    ("bool nan mask", pd.DataFrame({'d': pd.Series(["ab", None], dtype=object)}), "return a[a['d'].str.contains('a')].shape[0]", "'a')]", "'a', na=False)]"),
    ("index key sort", df({"g": ['b','a'],"v": [1,2]}), "t = a.groupby('g').sum()\nreturn t[['g','v']].values.tolist()", '.sum()', '.sum().reset_index()'),
    ("merge on lacks left", df({"key": [1],"v": [2]}), "b = pd.DataFrame({'key_id':[1],'w':[3]})\nreturn a.merge(b, on='key_id')['w'].tolist()", "on='key_id'", "left_on='key', right_on='key_id'"),
    ("bcast row mean", np.array([[1.,3.,5.],[2.,6.,1.]]), 'return (a - a.mean(axis=1)).tolist()', 'a.mean(axis=1)', 'a.mean(axis=1, keepdims=True)'),
    ("matmul", np.array([[1.,3.,5.],[2.,6.,1.]]), 'w = np.ones((2, 3))\nreturn (a @ w).tolist()', 'a @ w', 'a @ w.T'),
    ("iat label", pd.Series([5,6,7]), 'b = a[a > 5]\nreturn int(b[0])', 'b[0]', 'b.iloc[0]'),
    ("iloc name", df({"x": [1],"y": [2]}), "return a.iloc[:, 'y'].tolist()", 'iloc', 'loc'),
    ("rename cols", df({"x": [1]}), "return list(pd.DataFrame(a.values, column=['q']).columns)", 'column=', 'columns='),
]  # fmt: skip
HEAD = "import pandas as pd\nimport numpy as np\n\n\ndef tool(a):\n"


@pytest.mark.requirement("HEAL-8")
def test_a_variation_of_a_mistake_is_fixed_without_more_reach():
    unfixed = []
    for name, argument, body, wrong, right in VARIATIONS:
        code = HEAD + textwrap.indent(f"{body}\n", "    ")
        expected, failure = run(code.replace(wrong, right), {"a": argument})
        assert failure is None, failure.evalue
        example, kept = {"a": values.kept(argument)}, values.kept(expected)
        _, failure = run(code, {"a": argument})
        assert failure is not None, name
        case = case_of(code, example, declared(example, kept), failure=failure)
        found = [patch for patch in RulesAdvisor().propose(case) if _gives(patch.code, argument, kept)]
        unfixed += [] if found and added_reach(code, found[0].code) == () else [name]
    assert unfixed == []


@pytest.mark.parametrize(
    ("column", "line", "after"),
    [
        (["1", "2"], "return (a['x'] - 1).tolist()", "return (a['x'].astype(float) - 1).tolist()"),
        (
            ["2024-01-31"],
            "return a['x'].dt.day.tolist()",
            "return a['x'].astype(\"datetime64[us]\").dt.day.tolist()",
        ),
    ],
)
def test_code_that_imports_nothing_is_fixed_without_an_import_first(column, line, after):
    code = f"def tool(a):\n    {line}\n"
    argument = pd.DataFrame({"x": column})
    _, failure = run(code, {"a": argument})
    (first, *_) = RulesAdvisor().propose(case_of(code, {"a": values.kept(argument)}, failure=failure))
    assert first.code == f"def tool(a):\n    {after}\n"


def _gives(code, argument, kept):
    value, failure = run(code, {"a": argument})
    return failure is None and values.meets(kept, value)

"""What an edit does to the meaning of the code."""

from __future__ import annotations

import pytest

from healkit.parts.explain.edit_kinds import has_same_words, is_misspelling, kind_of, may_be_a_fix

pytestmark = pytest.mark.requirement("MEAN-1")


@pytest.mark.parametrize(
    ("before", "after", "declared", "kind"),
    [
        ("o['order_date']", "o['Order Date']", "renames", "renames"),
        ("m['B_FX_mean']", "m['B_FX']", "renames", "assumes"),
        ("c.predict_proba(x)", "c.predict(x)", "renames", "assumes"),
        ("s.append(o)", "pd.concat([s, o])", "migrates", "migrates"),
        ("o['d'] = f(o['d'])", "o['d'] = f(o.get('d', 0))", "renames", "invents"),
        ("o['d']", "o.get('d')", "", "invents"),
        ("x.astype(int)", "pd.to_numeric(x, errors='coerce')", "converts", "discards"),
        ("x.astype(int)", "x.fillna(0).astype(int)", "converts", "invents"),
        ("x.astype(int)", "x.astype('Int64')", "converts", "converts"),
        ("to_datetime(x)", "to_datetime(x, format='mixed')", "converts", "assumes"),
        ("to_datetime(x)", "to_datetime(x, dayfirst=True)", "converts", "converts"),
        ("d.append({'a': 1}, ignore_index=True)", "d.add({'a': 1})", "migrates", "migrates"),
        ("1 - d['a'].max", "1 - d['a'].max()", "restructures", "restructures"),
        ("1 - d['a']", "1 - d['a'].max()", "restructures", "assumes"),
        ("a, b, rest = f()", "a, b = f()", "restructures", "restructures"),
        ("f(a, b, rest)", "f(a, b)", "restructures", "discards"),
        ("d = d.sort_values('a', inplace=True)", "d = d.sort_values('a')", "restores", "restores"),
        ("d.append({'a': 1}, ignore_index=True)", "d.add({'a': 1})", "renames", "discards"),
        ("d.drop(['a'])", "d.drop(columns=['a'])", "restructures", "restructures"),
        ("print('a' + round(v, 2))", "print('a' + str(round(v, 2)))", "converts", "converts"),
        ("d = {'ann': 4}\nassert d", "d = {'ann': 5}\nassert d", "", "invents"),
        ("a[3]", "a[2]", "", "restructures"),
        ("np.dot(a, b)", "np.dot(a, b.T)", "restructures", "assumes"),
        ("x > 3", "x >= 3", "", "assumes"),
        ("f()", "try:\n    f()\nexcept ValueError:\n    pass", "", "discards"),
        ("check(x)\nf(x)", "f(x)", "", "discards"),
        ("x / n", "x / (n or 1)", "", "invents"),
        ("Path('r') + '/a.csv'", "Path('r') / '/a.csv'", "restructures", "discards"),
        (
            "for n in x:\n    v[n] += 1",
            "for n in x:\n    v[n] = v.get(n, 0) + 1",
            "restructures",
            "restructures",
        ),
        ("v['a'] += 1", "v['a'] = v.get('a', 0) + 1", "restructures", "invents"),
        ("for n in x:\n    t += n", "t = 0\nfor n in x:\n    t += n", "restores", "restores"),
        ("t['a'] = 1", "t = {}\nt['a'] = 1", "restructures", "invents"),
        ("d[a > 1 & b < 2]", "d[(a > 1) & (b < 2)]", "restructures", "restructures"),
    ],
)
def test_an_edit_is_of_no_better_kind_than_what_is_seen_in_it(
    before: str, after: str, declared: str, kind: str
) -> None:
    assert kind_of(before, after, declared) == kind  # type: ignore[arg-type]  # as a row declares it
    assert may_be_a_fix(kind) is (kind not in ("assumes", "invents", "discards"))  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("wrong", "right", "misspelt"),
    [
        ("rgion", "region", True),
        ("OrderID", "order_id", True),
        ("Order Date", "order_date", True),
        ("ales", "sales", True),
        ("tota_price", "total_price", True),
        ("mean_price", "price", False),
        ("sales_2020", "sales_2021", False),
        ("start_date", "end_date", False),
        ("height", "weight", False),
        ("X_train", "y_train", False),
        ("pd", "np", False),
    ],
)
def test_a_misspelt_name_has_other_letters_and_not_other_words(
    wrong: str, right: str, misspelt: bool
) -> None:
    assert is_misspelling(wrong, right) is misspelt


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("orders.fill_na(0)", "orders.fillna(0)", True),
        ("survey['answer'].map[codes]", "survey['answer'].map(codes)", True),
        ("a == 1 & b == 2", "(a == 1) & (b == 2)", True),
        ("orders.fill(0)", "orders.fillna(0)", False),
        ("a - b", "a + b", False),
        ("orders.mean()", "orders.mean(axis=1)", False),
    ],
)
def test_an_edit_of_brackets_and_marks_alone_keeps_all_words(before: str, after: str, *, same: bool) -> None:
    assert has_same_words(before, after) is same


def test_what_the_author_wrote_is_not_invented() -> None:
    assert kind_of("orders.fill_na(0)", "orders.fillna(0)", "renames") == "renames"
    assert kind_of("orders.fil(0)", "orders.fillna(0)", "renames") != "renames"

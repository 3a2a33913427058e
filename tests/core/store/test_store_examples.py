"""Examples of a tool: three forms, doctest lines, refusals."""

from __future__ import annotations

import ast
import doctest
from typing import Any

import pytest

from healkit.core.contracts.patches import same_value
from healkit.core.contracts.vault import checked_examples
from healkit.core.pysource import shapes
from healkit.core.pysource.shapes import examples_in
from healkit.core.store.database import Database
from healkit.core.store.vault import Vault
from healkit.core.wire.encoding import to_jsonable
from healkit.errors import ExamplesInvalid

PLAIN = "def double(n):\n    return n * 2\n"
WITH_DOCTESTS = '''
from decimal import Decimal


class Pair:
    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return f"<Pair {self.n}>"


def double(n, times=1, *, as_pair=False):
    """Double it.

    >>> double(2)
    4
    >>> double('ab', times=2)
    'abababab'
    >>> double((1, 2))
    (1, 2, 1, 2)
    >>> double({1})
    Traceback (most recent call last):
        ...
    TypeError: unsupported operand type(s) for *: 'set' and 'int'
    >>> {double(2): 1}
    {4: 1}
    >>> double(Decimal(1))
    Decimal('2')
    >>> double(3, as_pair=True)
    <Pair 6>
    >>> double(3, as_pair=True)  # doctest: +ELLIPSIS
    <Pair ...>
    >>> print(double('a'))
    aa
    >>> 1 + 1
    2
    >>> double(0.1)  # doctest: +SKIP
    0.3
    >>> numbers = [1]
    >>> numbers.append(2)
    >>> double(numbers)
    [1, 2, 1, 2]
    >>> for number in double(numbers):
    ...     print(number)
    1
    2
    1
    2
    >>> double(
    ...     numbers[0]
    ... )
    2
    """
    found = n * 2**times
    return Pair(found) if as_pair else found
'''


def read(code: str, name: str = "double") -> list[dict[str, Any]]:
    tree = ast.parse(code)
    return examples_in(tree, shapes.read_shape(tree, name))


def outcome(code: str, example: dict[str, Any]) -> dict[str, Any]:
    """Run a tool of this file on an example, here; return what it does."""
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    try:
        if "arguments" in example:
            value = namespace["double"](**example["arguments"])
        else:
            *before, last = ast.parse(example["call"]).body
            exec(compile(ast.Module(before, []), "<before>", "exec"), namespace)
            assert isinstance(last, ast.Expr)
            value = eval(compile(ast.Expression(last.value), "<call>", "eval"), namespace)
    except Exception as error:
        return {"raises": type(error).__name__}
    return {"result": to_jsonable(value)[0]}


def test_doctest_lines_become_examples() -> None:
    assert read(WITH_DOCTESTS) == [
        {"arguments": {"n": 2}, "result": 4},
        {"arguments": {"n": "ab", "times": 2}, "result": "abababab"},
        {"call": "double((1, 2))", "result": [1, 2, 1, 2]},
        {"call": "double({1})", "raises": "TypeError"},
        {"call": "{double(2): 1} == {4: 1}", "result": True},
        {"call": "repr(double(Decimal(1)))", "result": "Decimal('2')"},
        {"call": "repr(double(3, as_pair=True))", "result": "<Pair 6>"},
        {"call": "str(double('a'))", "result": "aa"},
        {"call": "numbers = [1]\nnumbers.append(2)\ndouble(numbers)", "result": [1, 2, 1, 2]},
        {
            "call": "numbers = [1]\nnumbers.append(2)\ndouble(numbers)\n"
            "for number in double(numbers):\n    print(number)\ndouble(numbers[0])",
            "result": 2,
        },
    ]


def test_examples_agree_with_doctest() -> None:
    namespace: dict[str, Any] = {}
    exec(WITH_DOCTESTS, namespace)
    (found,) = doctest.DocTestFinder().find(namespace["double"], "double", globs=namespace)
    assert doctest.DocTestRunner(verbose=False).run(found).failed == 0
    broken = WITH_DOCTESTS.replace("n * 2**times", "n * 3**times")
    for example in read(WITH_DOCTESTS):
        right = {name: example[name] for name in ("result", "raises") if name in example}
        assert same_value(right, outcome(WITH_DOCTESTS, example)), example
        assert "raises" in right or not same_value(right, outcome(broken, example)), example


def test_an_ambiguous_docstring_gives_no_example() -> None:
    for docstring in (
        ">>> double(", "Double it.\n\n  >>> double(2)\n 4", "Write `>>>` before a line.", ">>> print(double(2), 3)\n4 3",
        ">>> other(2)\n4",
    ):  # fmt: skip
        assert read(f"def double(n):\n    {docstring!r}\n    return n * 2\n") == []
    prints = 'def double(n):\n    """\n    >>> double(2)\n    twice 2\n    >>> double(0)\n    0\n    """\n    print(n)\n'
    assert read(prints) == [{"arguments": {"n": 0}, "result": 0}]


def test_classes_and_dict_functions_give_examples() -> None:
    said = '"""\n{0}>>> {1}({{"n": 2}})\n{0}4\n{0}"""\n{0}return arguments["n"] * 2\n'
    code = "class DoubleTool(Tool):\n    def run(self, arguments):\n        " + said.format(
        " " * 8, "DoubleTool().run"
    )
    assert read(code) == [{"call": "DoubleTool().run({'n': 2})", "result": 4}]
    code = "def double(arguments):\n    " + said.format(" " * 4, "double")
    assert read(code) == [{"call": "double({'n': 2})", "result": 4}]


def test_all_three_forms_of_examples_are_accepted_as_they_are() -> None:
    given = [
        {"arguments": {"n": (1, 2)}, "result": [1, 2]},
        {"arguments": {"n": None}, "raises": "json.JSONDecodeError"},
        {"call": "n = 2\ndouble(n)", "result": 4},
        {"call": "double(None)", "raises": "TypeError"},
        {"arguments": {}},
    ]
    assert checked_examples(given) == given


WRONG: list[tuple[Any, str]] = [
    (7, "it is a int, not a dict"),
    ({"arguments": {}, "resutl": 1}, "'resutl' is not part of an example. Did you mean 'result'?"),
    ({"result": 1}, "it needs either arguments or a call"),
    ({"arguments": {}, "call": "f()"}, "it needs either arguments or a call"),
    ({"arguments": {}, "result": 1, "raises": "ValueError"}, "it cannot both return and raise"),
    ({"arguments": [1]}, "its arguments are not a dict"),
    ({"arguments": {1: 2}}, "its arguments are not a dict"),
    ({"call": 7}, "its call is a int"),
    ({"call": "f("}, "its call does not parse"),
    ({"call": " "}, "its call is empty"),
    ({"call": "n = f()", "result": 1}, "does not end in an expression"),
    ({"arguments": {}, "raises": "not a name"}, "raises='not a name' is not the name of an exception"),
    ({"arguments": {}, "raises": ValueError}, "is not the name of an exception"),
]


def test_an_empty_example_is_refused_by_number(database: Database) -> None:
    vault = Vault(database)
    for wrong, why in WRONG:
        with pytest.raises(ExamplesInvalid) as caught:
            vault.add("double", PLAIN, examples=[{"arguments": {"n": 1}, "result": 2}, wrong])
        assert str(caught.value).startswith("Example 2, ")
        assert why in str(caught.value)
        assert caught.value.code == "EXAMPLES_INVALID"
        assert vault.names() == []


def test_examples_of_sql_tools_and_of_wrong_type_are_refused(database: Database) -> None:
    vault = Vault(database)
    with pytest.raises(ExamplesInvalid, match="a SQL tool has no Python"):
        vault.add("one", "SELECT :n AS n", type="sql", examples=[{"call": "1"}])
    with pytest.raises(ExamplesInvalid, match="must be a list, not a dict"):
        vault.add("double", PLAIN, examples={"arguments": {}})


def test_derived_examples_follow_a_persons_patch_only(database: Database) -> None:
    vault = Vault(database)
    code = 'def double(n):\n    """Double it.\n\n    >>> double(2)\n    4\n    """\n    return n * 3\n'
    entry = vault.add("double", code)
    assert (entry.examples, entry.flags["derived"][-1]) == (
        [{"arguments": {"n": 2}, "result": 4}],
        "examples",
    )
    forged = code.replace("    4\n", "    6\n")
    for author in ("model", "agent", "search", "rule"):
        assert vault.patch("double", forged + f"# {author}\n", author=author).examples == entry.examples
    assert vault.patch("double", PLAIN).examples == entry.examples
    assert vault.patch("double", forged).examples == [{"arguments": {"n": 2}, "result": 6}]


def test_given_examples_stay(database: Database) -> None:
    vault = Vault(database)
    given = [{"arguments": {"n": 5}, "result": 10}]
    assert vault.add("double", WITH_DOCTESTS, examples=given).examples == given
    assert vault.patch("double", WITH_DOCTESTS + "# more\n").examples == given
    assert len(vault.set_examples("double", None).examples) == 10
    assert "examples" in vault.get("double").flags["derived"]
    assert vault.set_examples("double", given).examples == given
    assert "examples" not in vault.get("double").flags["derived"]


def test_an_example_is_added_once_to_exactly_that_tool(database: Database) -> None:
    vault = Vault(database)
    vault.add("double", PLAIN)
    for _ in range(2):
        added = vault.add_example("double", {"arguments": {"n": (1,)}, "result": [1, 1]})
    assert added.examples == [{"arguments": {"n": {"@": ["tuple", [1]]}}, "result": [1, 1]}]
    with pytest.raises(ExamplesInvalid, match="Example 1"):
        vault.add_example("double", {"n": 1})
    assert vault.set_examples("double", []).examples == []
    assert len(vault.history("double")) == 1


def test_a_draft_that_does_not_parse_has_no_examples_until_it_does(database: Database) -> None:
    vault = Vault(database)
    assert vault.add("double", WITH_DOCTESTS + "def (", draft=True).examples == []
    assert len(vault.patch("double", WITH_DOCTESTS).examples) == 10

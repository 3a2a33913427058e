"""Source texts: positions, edits, parentheses where needed."""

from __future__ import annotations

import ast

import pytest

from healkit.core.contracts.patches import apply_edits
from healkit.parts.explain.source import Source, parenthesized, text_precedence
from healkit.parts.heal.advisors.search.program import Program


def put(text: str, old: str, new: str) -> str:
    """Return the text with the first expression that reads `old` replaced."""
    program = Program(text)
    for node in program.nodes:
        if isinstance(node, ast.expr) and program.is_value(node) and program.segment(node) == old:
            return apply_edits(text, [program.replace(node, new)])
    raise AssertionError(old)


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("x = a * b", "a", "c + d", "x = (c + d) * b"),
        ("x = a + b", "b", "c - d", "x = a + (c - d)"),
        ("x = a + b", "a", "c - d", "x = c - d + b"),
        ("x = a ** b", "a", "-c", "x = (-c) ** b"),
        ("x = -a", "a", "b + c", "x = -(b + c)"),
        ("x = a.b", "a", "c + d", "x = (c + d).b"),
        ("x = a[b]", "b", "c + d", "x = a[c + d]"),
        ("x = f(a)", "a", "c if d else e", "x = f(c if d else e)"),
        ("x = a and b", "a", "c or d", "x = (c or d) and b"),
        ("x = not a", "a", "b or c", "x = not (b or c)"),
        ("x = a < b", "a", "not c", "x = (not c) < b"),
        ("x = (a) * b", "a", "c + d", "x = (c + d) * b"),
        ("x = [y for y in a if b]", "b", "c if d else e", "x = [y for y in a if (c if d else e)]"),
        ("x = a.b", "a", "1", "x = (1).b"),
        ("x = lambda: a", "a", "b, c", "x = lambda: (b, c)"),
        ("x = *a, b", "a", "c or d", "x = *(c or d), b"),
    ],
)
def test_parentheses_are_added_only_where_needed(text: str, old: str, new: str, result: str) -> None:
    assert put(text, old, new) == result


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("x = [a,  # first\n     b]  # both\n", "b", "c"),
        ("x = 'é' + a + '日本'  # ü\n", "a", "b"),
        ("def f(a):\r\n\tif a:\r\n\t\treturn a\t # tab\r\n", "a", "b"),
        ("x = (a\n     # between\n     + b)\n", "b", "c * d"),
        ("x = a;y = b\n", "b", "c"),
        ("x = a\x0c\ny = b\n", "b", "c"),
    ],
)
def test_only_the_expression_changes(text: str, old: str, new: str) -> None:
    position = text.rindex(old) if text.count(old) == 1 else None
    result = put(text, old, new)
    if position is not None:
        assert result == text[:position] + new + text[position + len(old) :]
    assert len(result) - len(text) == len(new) - len(old)


def test_lines_end_where_the_tokenizer_ends_them() -> None:
    source = Source("a = '\x85 \u2028'\r\nb = 1\rc = 2\n")
    assert source.newline == "\r\n"
    assert [source.segment(node) for node in source.tree.body] == ["a = '\x85 \u2028'", "b = 1", "c = 2"]


def test_byte_columns_become_character_positions() -> None:
    source = Source("größe = 'ä' if ß else 𝕩\n")
    value = source.tree.body[0].value
    assert source.segment(value.test) == "ß"
    assert source.segment(value.orelse) == "𝕩"


def test_an_expression_in_an_f_string_is_edited_only_at_a_known_place() -> None:
    text = 'x = f"{a} and {b + 1!r:>{w}}"\n'
    for old in ("a", "b + 1"):
        result = put(text, old, "c")
        assert result == text.replace(f"{{{old}", "{c", 1)


@pytest.mark.parametrize(
    ("text", "atom"),
    [
        ("(a + b)", True),
        ("(a) + (b)", False),
        ("(a, b)", True),
        ("(a), (b)", False),
        ("f(a,\n b)", True),
        ("a +\n b", False),
    ],
)
def test_a_text_is_an_atom_only_if_parentheses_enclose_all_of_it(text: str, atom: bool) -> None:
    assert (parenthesized(text, 16) == text) is atom
    assert text_precedence(f"({text})") == 16


def test_inserted_lines_get_the_indentation_and_line_end_around_them() -> None:
    text = "def f(a):\r\n\tif a:\r\n\t\tb = a\r\n\treturn b"
    program = Program(text)
    last = program.tree.body[0].body[-1]
    edit = program.insert(last, ["if not a:", "\treturn 0"])
    assert edit is not None
    assert (
        apply_edits(text, [edit])
        == "def f(a):\r\n\tif a:\r\n\t\tb = a\r\n\tif not a:\r\n\t\treturn 0\r\n\treturn b"
    )
    after = program.insert(last, ["x = 1"], after=True)
    assert after is not None
    assert apply_edits(text, [after]).endswith("return b\r\n\tx = 1")

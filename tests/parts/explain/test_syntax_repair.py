"""Syntax rules: broken code becomes what was meant."""

from __future__ import annotations

import ast
import random
import re
import sys

import pytest
from failing_tools import entry_of, run

from healkit.core.contracts.failure import Failure
from healkit.parts.explain import keys
from healkit.parts.explain.facts import libraries
from healkit.parts.explain.syntax_repair import readings
from healkit.parts.explain.syntax_repair.draft import TOKENS, compiler_message, tokens
from healkit.parts.explain.syntax_repair.nearest_text import nearest, repairs
from healkit.parts.explain.syntax_repair.oddities import ODDITIES, oddities, oddness
from healkit.parts.heal.advisor import Case
from healkit.parts.heal.advisors.simple import RulesAdvisor

BODY = "def tool(a):\n{0}    return a\n"
GOOD = 'def tool(items):\n    """Add up."""\n    total = 0  # none yet\n    for item in items:\n        total += item["n"]\n    return round(total, 2)\n'
#: A name, what is broken in GOOD: the part, and what stands there instead.
BROKEN_PARTS = {
    "no colon after def": ("(items):", "(items)"),
    "no colon after for": ("in items:", "in items"),
    "semicolon for colon": ("in items:", "in items;"),
    "no in": ("item in items", "item items"),
    "misspelt def": ("def tool", "dfe tool"),
    "misspelt return": ("return round", "retrun round"),
    "misspelt for": ("for item", "fro item"),
    "missing def": ("def tool(items)", "tool(items)"),
    "unclosed round bracket": ("round(total, 2)", "round(total, 2"),
    "unclosed square bracket": ('item["n"]', 'item["n"'),
    "one bracket too many": ("round(total, 2)", "round(total, 2))"),
    "another closing bracket": ("round(total, 2)", "round(total, 2]"),
    "no opening bracket": ("round(total, 2)", "round total, 2)"),
    "no comma": ("(total, 2)", "(total 2)"),
    "two commas": ("(total, 2)", "(total,, 2)"),
    "unterminated text": ('item["n"]', 'item["n]'),
    "text that did not begin": ('item["n"]', 'item[n"]'),
    "marks of two kinds": ('item["n"]', "item[\"n']"),
    "docstring with two marks at its end": ('"""Add up."""', '"""Add up.""'),
    "docstring without an end": ('"""Add up."""', '"""Add up.'),
    "line not indented": ("        total +=", "    total +="),
    "line moved in": ("    return round", "      return round"),
    "line moved out": ("    return round", "return round"),
    "block moved out": ("    for item in items:\n        total", "for item in items:\n    total"),
    "tab for spaces": ("        total +=", "\ttotal +="),
    "curly quotes": ('item["n"]', "item[\u201cn\u201d]"),
    "no-break space": ("total += item", "total\u00a0+= item"),
    "zero-width space": ("total += item", "total\u200b += item"),
    "full-width colon": ("in items:", "in items\uff1a"),
    "two equals signs": ("total = 0", "total = = 0"),
    "plus plus": ('total += item["n"]', 'total =+ = item["n"]'),
    "stray backslash": ("total = 0  #", "total = 0 \\ #"),
    "two dots": ('item["n"]', 'item["n"].'),
    "a word twice": ("for item in", "for item in in"),
}
MORE = {
    "assign for compare": ("if a = 1:\n        a = 2", "if a == 1:\n        a = 2"),
    "print with percent": ("print 'a %s' % a", "print('a %s' % a)"),
    "C loop": ("for (int i = 0; i < a; i++) {\n        a -= 1\n    }", "for i in range(0, a):\n        a -= 1"),
    "unterminated f-string": ("a = f'{a}", "a = f'{a}'"),
    "unclosed field": ("a = f'{a'", "a = f'{a}'"),
    "apostrophe": ("a = 'don't'", 'a = "don\'t"'),
    "empty block": ("if a:\n    a = 2", "if a:\n        a = 2"),
    "by place after by name": ("a = dict(b=1, [])", "a = dict([], b=1)"),
    "name on the right": ("a + 1 = a", "a = a + 1"),
    "number before a name": ("a = 2a", "a = 2 * a"),
    "dict without a colon": ("a = {'b' 1}", "a = {'b': 1}"),
    "dict with equals": ("a = {'b' = 1}", "a = {'b' : 1}"),
    "import without a word": ("from math sqrt", "from math import sqrt"),
    "keyword for a name": ("class = a", "class_ = a"),
    "await in a plain function": ("await a", None),
}  # fmt: skip
SAME_MARKS = ("b = {'c': 1}\n    a = f'{b['c']}'", "b = {'c': 1}\n    a = f'{b[\"c\"]}'")
if sys.version_info < (3, 12):
    MORE["same marks in an f-string"] = SAME_MARKS
WRAPPED = {
    "a fence": "```python\n{0}```\n",
    "a fence and prose": "Here is the code you asked for:\n\n```python\n{0}```\n\nIt adds up all the numbers. Let me know!\n",
    "an open fence": "```py\n{0}",
    "prose only": "Sure, here is the function you need:\n\n{0}\nI hope this helps you a lot.\n",
    "a byte order mark": "\ufeff{0}",
    "an indented block": "indent",
    "prompts": "prompts",
    "line numbers": "numbers",
    "a quotation": "quotation",
    "a null byte": "{0}\x00",
}


def first_of(code: str) -> list[str]:
    return [item.text for item in nearest(code)]


def same(text: str, wanted: str) -> bool:
    return ast.dump(ast.parse(text)) == ast.dump(ast.parse(wanted))


@pytest.mark.requirement("HEAL-2")
def test_one_broken_place_is_repaired_and_the_rest_stays():
    wrong = []
    for name, (part, broken) in BROKEN_PARTS.items():
        code = GOOD.replace(part, broken, 1)
        assert compiler_message(code) is not None, f"the sample must not parse: {name}"
        right = next((text for text in first_of(code)[:5] if same(text, GOOD)), "")
        kept = [line for line in GOOD.splitlines() if line in code.splitlines()]
        wrong += [name] if set(kept) - set(right.splitlines()) else []
    assert wrong == []


def test_habits_of_other_languages_are_rewritten():
    wrong = []
    for name, (broken, wanted) in MORE.items():
        code = BODY.format(f"    {broken}\n")
        after = BODY.format(f"    {wanted}\n") if wanted else f"async {code}"
        assert compiler_message(code) is not None, f"the sample must not parse: {name}"
        texts = first_of(code)[:5]
        wrong += [] if any(same(text, after) for text in texts) else [(name, texts[:3])]
    assert wrong == []


def test_nested_quotes_in_an_f_string_are_repaired_only_where_python_rejects_them():
    broken, wanted = (BODY.format(f"    {text}\n") for text in SAME_MARKS)
    if sys.version_info >= (3, 12):
        assert compiler_message(broken) is None
        assert same(broken, wanted)
    else:
        assert compiler_message(broken) is not None


def test_text_around_the_code_is_left_out():
    lines = GOOD.splitlines()
    forms = {
        "indent": "".join(f"    {line}\n" for line in lines),
        "prompts": "".join(f"{'... ' if line.startswith(' ') else '>>> '}{line}\n" for line in lines)
        + "...\n>>> tool([])\n0\n",
        "numbers": "".join(f"{n}  {line}\n" for n, line in enumerate(lines, 1)),
        "quotation": "".join(f"> {line}\n" for line in lines),
    }
    for name, form in WRAPPED.items():
        code = forms.get(form) or form.format(GOOD)
        assert compiler_message(code) is not None, name
        assert ast.dump(ast.parse(first_of(code)[0])).startswith(ast.dump(ast.parse(GOOD))[:-20]), name


def test_each_rewrite_matches_its_own_example():
    for row in readings.REWRITES:
        assert compiler_message(row.before) is not None, row.name
        assert readings.spliced(row.before, readings.matches(row, row.before)) == row.after
        assert row.after in first_of(row.before) or compiler_message(row.after) is not None, row.name


def test_no_rewrite_matches_inside_strings_or_comments():
    for row in readings.REWRITES:
        inside = row.before.replace("\n", " ").replace('"', "").replace("'", "")
        quiet = f'b = "{inside}"  # {inside}\n'.replace("\\", "")
        assert all(start == 0 for start, _, _ in readings.matches(row, quiet)), row.name


def test_each_part_of_a_pattern_matches_its_example():
    for kind, _, example in TOKENS:
        assert [(token.kind, token.text) for token in tokens(example)] == [(kind, example)]
    for table in (readings.CODE_LINES, libraries.NO_SUCH, libraries.PARTS, keys.COLUMN_MESSAGES):
        for pattern, example in table.items():
            assert re.search(rf"(?i){pattern}", example), pattern


def test_each_oddity_is_found_in_its_example():
    for name, (weight, example) in ODDITIES.items():
        draft = example if "draft" in name else ""
        assert name in list(oddities(ast.parse(example), draft)), name
        assert oddness(example, draft)[0] >= weight, name


def test_a_program_in_another_language_becomes_python():
    code = "function tool(a) {\n    let b = 0;\n    foreach (x in a) {\n        if (x > 1 && x != 3) {\n            b++;\n        }\n    }\n    return b;\n}\n"
    (text, *_) = first_of(code)
    assert run(text, {"a": [1, 2, 3, 4]}) == (2, None)


def test_a_draft_is_repaired_whatever_its_failure_says():
    code = "def tool(a)\n    return Counter(a)['b']\n"
    for failure in (None, Failure("CODE_SYNTAX", "CodeDoesNotParse", "odd", "odd")):
        patches = list(RulesAdvisor().propose(Case(entry_of(code, draft=True), failure, ())))
        assert run(patches[0].code, {"a": "abb"}) == (2, None)
        assert "imported" in patches[0].reason
        assert patches[0].rank > patches[-1].rank


def test_errors_that_only_the_compiler_finds_are_repaired_too():
    code = "def tool(a):\n    b = a + 1\nreturn b\n"
    assert "def tool(a):\n    b = a + 1\n    return b\n" in [text for text, _, _ in repairs(code)]


@pytest.mark.timeout(60)
def test_hopeless_texts_end_in_time_without_an_error():
    for code in (
        "",
        "\n\n",
        "((((((",
        "\\",
        '"""',
        "\x00",
        "def",
        "%" * 300,
        "[" * 500,
        "🙂 = 1",
        "if\n" * 200,
    ):
        assert all(compiler_message(item.text) is None for item in nearest(code))


def test_windows_line_ends_stay():
    code = GOOD.replace("in items:", "in items").replace("\n", "\r\n")
    assert GOOD.replace("\n", "\r\n") in first_of(code)


def test_draft_tokens_add_up_to_the_text():
    rng = random.Random(3)
    for _ in range(300):
        text = "".join(rng.choice("ab1\"'#\\\n \t([{}]):=+.é\x00🙂") for _ in range(rng.randrange(40)))
        assert "".join(token.text for token in tokens(text)) == text


def test_a_mistake_above_the_one_reported_first_is_repaired_too() -> None:
    """H6: an unterminated string is reported before a missing colon above it."""
    two, three = (
        "def f(xs)\n    s = sum(xs)\n    return 'b\n",
        "def f(a)\n    print('a: ' + a\n    return 'b\n",
    )
    right = [
        text.replace("\n", ":\n", 1).replace("+ a\n", "+ a)\n").replace("'b", "'b'") for text in (two, three)
    ]
    assert [next(iter(repairs(draft)))[0] for draft in (two, three)] == right

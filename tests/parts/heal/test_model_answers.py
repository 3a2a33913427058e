"""Answers of models: one sentence and one block."""

from __future__ import annotations

import pytest

from healkit.core.contracts.vault import VaultEntry
from healkit.parts.heal.advisors.model import NO_REASON, UnusableAnswer, read_answer, same_code, split_blocks

BROKEN = "def halve(n):\n    return n / 0\n"
RIGHT = "def halve(n):\n    return n / 2\n"


def entry(code: str = BROKEN, kind: str = "python") -> VaultEntry:
    return VaultEntry("halve", "default", 3, code, "", type=kind)


def fenced(code: str = RIGHT, language: str = "python", fence: str = "```") -> str:
    return f"{fence}{language}\n{code.rstrip()}\n{fence}\n"


TAKEN = {
    "a sentence and a block": f"It divided by zero.\n\n{fenced()}",
    "no language": fenced(language=""),
    "tildes": fenced(fence="~~~"),
    "a longer fence": fenced(fence="`````"),
    "a block that never closes": f"Here:\n```python\n{RIGHT}",
    "line ends of another system": f"Fixed.\n{fenced()}".replace("\n", "\r\n"),
    "what was wrong, what is right, and how to use it": (
        f"Before:\n{fenced(BROKEN)}\nAfter:\n{fenced()}\nThen call it:\n{fenced('result = halve(4)', language='py')}"
    ),
    "an excerpt first": f"The line\n{fenced('    return n / 0')}\nis wrong.\n{fenced()}",
    "a block in a list": "1. The code:\n   ```python\n   def halve(n):\n       return n / 2\n   ```\n",
    "line numbers": fenced("   1 | def halve(n):\n   2 |     return n / 2\n"),
    "thinking aloud": f"<think>Perhaps {fenced('def halve(n): return 0')}</think>It divided by zero.\n{fenced()}",
    "no fence at all": RIGHT,
    "a diff and the code": f"{fenced('-    return n / 0', language='diff')}\n{fenced()}",
}


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_the_new_code_is_found_in_any_wrapping(text: str) -> None:
    assert read_answer(text, entry()).code == RIGHT


REFUSED = {
    "": "empty",
    "<think>Hm, what could it be": "empty",
    "I cannot help with that.": "no fenced block",
    fenced("--- a/halve\n+++ b/halve\n@@ -1 +1 @@\n-x\n+y\n", language="diff"): "diff",
    fenced("@@ -1,2 +1,2 @@\n def halve(n):\n-    return n / 0\n+    return n / 2\n", language=""): "diff",
    fenced("def halve(n:\n"): "never closed",
    fenced(BROKEN): "same as before",
    fenced("# fixed\n" + BROKEN.replace("n / 0", "(n/0)")): "same as before",
    fenced("def double(n):\n    return n / 2\n"): "not the whole tool",
    fenced("result = 4 / 2\n"): "not the whole tool",
    "```python\n```": "none of them|no tool|no function",
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items(), ids=REFUSED.values())
def test_an_answer_without_new_code_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnusableAnswer, match=why):
        read_answer(text, entry())


@pytest.mark.parametrize(
    ("prose", "reason"),
    [
        ("It divided by zero. Now it does not.", "It divided by zero."),
        ("**Reason:** the divisor was `0`.", "the divisor was 0."),
        ("Here is the code:\n\n- The divisor was 0.", "The divisor was 0."),
        ("", NO_REASON),
        ("# Fix\n", "Fix"),
    ],
)
def test_the_reason_is_the_first_sentence_without_markup(prose: str, reason: str) -> None:
    assert read_answer(f"{prose}\n{fenced()}", entry()).reason == reason


def test_a_draft_that_does_not_parse_may_become_any_tool() -> None:
    assert read_answer(fenced(), entry("def halve(n)\n  return")).code == RIGHT


def test_an_sql_statement_is_taken_unchanged() -> None:
    old, new = "SELECT nam FROM t\n", "SELECT name FROM t\n"
    assert read_answer(f"The column is name.\n{fenced(new, 'sql')}", entry(old, "sql")).code == new
    with pytest.raises(UnusableAnswer, match="same as before"):
        read_answer(fenced("SELECT nam\nFROM t", "sql"), entry(old, "sql"))


def test_codes_that_differ_in_layout_are_the_same() -> None:
    assert same_code("x = 1  # one\n", "x=1\n", "python")
    assert not same_code("x = 1\n", "x = 2\n", "python")
    assert same_code("x = (", "x  = (", "python")


def test_the_codes_line_ends_are_kept() -> None:
    crlf = entry(BROKEN.replace("\n", "\r\n"))
    assert read_answer(fenced(), crlf).code == RIGHT.replace("\n", "\r\n")


def test_a_docstring_with_a_shorter_fence_stays_in_its_block() -> None:
    code = 'def halve(n):\n    """Use:\n\n    ```\n    halve(4)\n    ```\n    """\n    return n / 2\n'
    assert read_answer(f"````python\n{code}````", entry()).code == code
    assert split_blocks("no fence")[0] == []

"""Revisions and cells: one way to show each."""

from __future__ import annotations

import pytest

from healkit.contracts.tools import place_label, revision_address, revision_label
from healkit.parsing import parse_revision


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("<fibonacci@2>", "fibonacci v2"),
        ("<fibonacci.teacher@2>", "fibonacci v2 (teacher)"),
        ("<In [3]>", "In [3]"),
        ("/usr/lib/python3/json/decoder.py", "/usr/lib/python3/json/decoder.py"),
        ("<frozen importlib>", "frozen importlib"),
    ],
)
def test_a_frame_is_shown_with_the_words_of_its_revision_or_cell(filename: str, shown: str) -> None:
    """U8: `@1`, `v1`, "revision 1" and `cell[2]`, `In [2]` stood for one thing each."""
    assert place_label(filename) == shown


def test_what_is_shown_and_what_is_typed_name_the_same_revision() -> None:
    """U8: what is typed and stored stays as it was."""
    assert revision_label("fibonacci", "default", None) == "fibonacci"
    assert revision_label("fibonacci", "teacher", 2) == place_label(
        f"<{revision_address('fibonacci', 'teacher', 2)}>"
    )
    assert [parse_revision(text) for text in ("2", "@2", "v2")] == [2, 2, 2]

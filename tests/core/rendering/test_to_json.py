"""Documents as JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from healkit.core.rendering.document import (
    Block,
    Card,
    Code,
    Diff,
    Facts,
    Fold,
    Items,
    Line,
    Only,
    Section,
    Span,
    Step,
    Steps,
    Table,
)
from healkit.faces.notebook.to_json import json_of

#: One of each kind of part, and what a page gets of it.
PARTS = [
    ("words", "words"),
    (Span("total", "code", "bad"), {"span": "total", "look": "code", "tone": "bad"}),
    (("in ", Span("x")), ["in ", {"span": "x"}]),
    (Line("why", "hint", label="hint"), {"line": "why", "look": "hint"}),
    (Items(["a", "b"]), {"items": ["a", "b"]}),
    (Code("1 / 0", 200), {"code": "1 / 0", "max_height_px": 200}),
    (Diff("-a\n+b"), {"diff": "-a\n+b"}),
    (
        Table(["n"], [["1"], [("two", Code("2"))]]),
        {"table": [["1"], [["two", {"code": "2"}]]], "headers": ["n"]},
    ),
    (Facts([("took", "1 ms")]), {"facts": [["took", "1 ms"]]}),
    (Fold("more", ["less"], is_open=True), {"fold": "more", "body": ["less"], "open": True}),
    (Section(["a"], is_last=True), {"section": ["a"], "last": True}),
    (Only("html", "page"), "page"),
    (Steps([Step("in full", "brief")], 100), ["in full"]),
    (Card("In it", "✗", "bad", below=["a"]), {"card": "In it", "mark": "✗", "tone": "bad", "below": ["a"]}),
]


@pytest.mark.requirement("FACE-9")
@pytest.mark.parametrize(("part", "expected"), PARTS, ids=lambda part: type(part).__name__)
def test_each_kind_of_part_has_a_form(part: object, expected: object) -> None:
    (card,) = json_of(Card(parts=(part,)))  # type: ignore[arg-type]  # of any kind
    assert isinstance(card, dict)
    assert card["parts"] == [expected]
    assert json.loads(json.dumps(card)) == card


def test_no_kind_of_part_is_forgotten() -> None:
    assert set(get_args(Block)) <= {type(part) for part, _ in PARTS}


def test_what_is_for_a_terminal_is_left_out_and_unseen_characters_are_spelt_out() -> None:
    card = Card("a\u202eb", parts=(Only("text", "terminal"), Code("\x1b[31mred\x1b[0m\x07")))
    assert json_of(card) == [{"card": "a\\u202eb", "parts": [{"code": "red\\x07"}]}]


def test_a_secret_is_hidden() -> None:
    assert "ghp_" not in json.dumps(json_of(Card(parts=(Code("token = 'ghp_" + "a1B2" * 9 + "'"),))))

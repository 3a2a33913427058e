"""Rows of the catalogue that raise do not stop the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from healkit.core.contracts.failure import Failure
from healkit.parts.explain import catalogue
from healkit.parts.explain.catalogue import (
    ExplanationText,
    FailurePattern,
    FixExample,
    FixRow,
    failure_kind,
    no_fix,
)
from healkit.parts.explain.explanation import MatchedFailure, explain
from healkit.parts.explain.fixes import FIXES, ROWS, proposals
from healkit.parts.explain.site import Proposal, Site
from healkit.parts.explain.source import Source
from healkit.parts.explain.syntax_repair import nearest_text
from healkit.parts.explain.syntax_repair.nearest_text import repairs

FAILURE = Failure("TOOL_EXCEPTION", "NameError", "name 'totl' is not defined", "", near=["total"])
CODE = "def f(total):\n    return totl\n"


def raising(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    raise RuntimeError("a mistake in the row")
    yield


#: Its sentence asks for a piece that no message has, and its fix raises.
BROKEN = FailurePattern(
    ("NameError",),
    texts=(ExplanationText("broken", "Nothing is called {no_such_piece}."),),
    fixes=("broken",),
)


@pytest.fixture
def broken_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = catalogue._patterns_for
    monkeypatch.setattr(catalogue, "_patterns_for", lambda label: (BROKEN, *rows(label)))
    monkeypatch.setitem(FIXES, "broken", raising)
    monkeypatch.setitem(ROWS, "broken", FixRow("", 1.0, "renames", FixExample(""), FixExample("")))


@pytest.mark.usefixtures("broken_row")
def test_the_next_row_explains_where_the_first_raises() -> None:
    """Audit R2."""
    explanation = explain(FAILURE)
    assert explanation.rule != "broken"
    assert "totl" in explanation.what
    assert (failure_kind(FAILURE), no_fix(FAILURE)) == ("name", "")


def test_a_failure_is_named_where_no_row_explains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit R2."""
    monkeypatch.setattr(catalogue, "_patterns_for", lambda label: (BROKEN,))
    assert explain(FAILURE).what == "NameError: name 'totl' is not defined"


@pytest.mark.usefixtures("broken_row")
def test_the_other_fixes_propose_where_one_raises() -> None:
    """Audit R2."""
    made = [code for _, _, code in proposals(Site(Source(CODE), "f", MatchedFailure(FAILURE)))]
    assert CODE.replace("totl", "total") in made


def test_the_other_repairs_are_tried_where_one_kind_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit R2."""

    def broken(draft: Any) -> Any:
        raise RuntimeError(draft)

    monkeypatch.setattr(nearest_text, "_KINDS_OF_CHANGES", (broken, *nearest_text._KINDS_OF_CHANGES))
    assert "def f(x):\n    return x\n" in [text for text, _, _ in repairs("def f(x)\n    return x\n")]

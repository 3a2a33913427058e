"""Cards of executions, in text and HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendering_samples import CALLS, FRAMES

from healkit.contracts.failure import Failure, Frame
from healkit.contracts.post_mortem import KeptFrame, Local
from healkit.failures.catalogue import explain, subjects
from healkit.rendering import execution_card, listings
from healkit.rendering import execution_card as cards
from healkit.rendering.document import Card, Line, Span
from healkit.rendering.execution_card import grouped
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of

#: What an untrusted notebook takes away; the words and their order are the same without.
FOR_SCREEN_READERS = {"role", "aria-label", "aria-level", "scope", "tabindex"}


class Elements(HTMLParser):
    """Every element and attribute of a page, and whether each opening has its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_message_comes_first_and_names_line_and_revision(make):
    first, second, third, *_ = make().to_text().splitlines()
    assert first == "✗ fibonacci v1 failed: ValueError: bad"
    assert second.strip() == "at line 9 of fibonacci v1, in helper"
    assert third.strip() == "return json.loads(text)"


def test_frames_of_libraries_are_folded_with_their_count(make):
    text, page = make().to_text(), make().to_html()
    assert "… 2 library frames folded: json/__init__.py, json/decoder.py" in text
    assert "raw_decode" not in text
    assert page.count("<details") == 2
    assert "2 library frames folded" in page


def test_a_recursion_is_one_item_with_its_depth():
    deep = Frame("<f@1>", 2, "f", "return f(n - 1)", in_tool=True)
    (group,) = grouped([deep] * 990)
    assert group.repeats == 990
    assert group.where == "f v1, line 2, in f  (× 990)"


def test_the_number_of_frames_can_be_limited():
    assert [g.frames for g in grouped(FRAMES, 1)] == [(FRAMES[-1],)]
    assert grouped(FRAMES, 100) == grouped(FRAMES)


def test_the_card_has_calls_record_and_next_steps(make):
    text = make(calls=CALLS).to_text()
    assert "t1 host.rate ✓ 3.2 ms" in text
    assert "t2 vault.other ✗ –  TOOL_EXCEPTION: KeyError: 'a'" in text
    assert "log row 4 · isolation namespaces · 34 ms · 2025-03-01 14:02:11 UTC" in text
    assert "%vault show fibonacci" in text
    assert "%run_tool fibonacci n=10" in text


def test_commands_fit_where_they_are_typed(make):
    execution = make(arguments={"text": "it's"}, persona="teacher")
    text = text_of(cards.card(execution, face="terminal"))
    assert """healkit run fibonacci --persona teacher --args '{"text": "it'"'"'s"}'""" in text
    assert "%run_tool" not in text
    assert """%run_tool fibonacci --persona teacher text="it's\"""" in execution.to_text()


@pytest.mark.parametrize("arguments", [{"…": "cut text"}, {"blob": "x" * 5000}])
def test_arguments_that_cannot_be_copied_are_not_offered(make, arguments):
    assert "%run_tool" not in make(arguments=arguments).to_text()


def test_other_endings_are_named_with_the_next_step(make):
    failure = Failure("TOOL_TIMEOUT", "TimeoutError", "after 30 s", "", FRAMES[:1], "Give it more time.")
    text = make(failure=failure, last_output="still here\n").to_text()
    assert "TOOL_TIMEOUT: the tool was still running when its time was up" in text
    assert "Give it more time." in text
    assert "│ still here" in text


def test_a_success_shows_its_value_and_its_conversions(make):
    execution = make(value={"a": [1]}, conversions=["$.x: set shown as a list"])
    assert execution.to_text().startswith("✓ fibonacci v1 returned {'a': [1]}")
    assert "$.x: set shown as a list" in execution.to_text()
    assert "$.x: set shown as a list" in execution.to_html()


def test_a_row_of_the_log_shows_its_summary(make):
    assert "returned [1, 2]" in make(status="SUCCESS", result_summary="[1, 2]").to_text()
    assert "is running" in make(status="RUNNING").to_html()


@pytest.mark.requirement("FACE-4")
def test_html_needs_no_style_script_or_roles(make):
    found = [make(calls=CALLS, last_output="x"), make(value=3), make(status="RUNNING")]
    for page in [*(one.to_html() for one in found), html_of(listings.executions(found))]:
        for tag, attributes in Elements(page).seen:
            assert tag in {"div", "b", "code", "mark", "pre", "details", "summary", "table", "thead", "tbody",
                           "tr", "th", "td", "span"}  # fmt: skip
            assert attributes.keys() - FOR_SCREEN_READERS <= {"style", "open"}
            assert has_literal_colours(attributes.get("style") or "")
        outer = Elements(page).seen[0][1]["style"] or ""
        assert "background-color:#" in outer
        assert ";color:#" in outer


def has_literal_colours(style: str) -> bool:
    """Return whether each colour of the page's theme follows a literal one, which stays where `var()` is removed."""
    literal = set()
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        if "var(" in value and name not in literal and not name.startswith("--"):
            return False
        literal.add(name)
    return True


def test_every_pair_of_colours_has_enough_contrast(make):
    pages = [make(calls=CALLS, warnings=["w"]).to_html(), make(value=3).to_html()]
    pages += [html_of(listings.diff("t", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n"))]
    for page in pages:
        for style in re.findall(r'style="([^"]*)"', page):
            ink = re.search(r"(?:^|;)color:#(\w{6})", style)
            paper = re.search(r"background-color:#(\w{6})", style)
            if ink and paper:
                assert _contrast(ink[1], paper[1]) >= 4.5, style


def _contrast(a: str, b: str) -> float:
    """WCAG 2's contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.slow
@given(st.text(), st.text(), st.text())
def test_worker_text_becomes_no_markup_and_moves_no_cursor(evalue, output, line):
    from rendering_samples import NOW

    from healkit.runtime.execution import Execution

    hostile = "<script>alert(1)</script>\x1b]0;title\x07\u202e"
    frame = Frame("<f@1>", 1, "<img src=x onerror=y>", line + hostile, in_tool=True)
    failure = Failure("TOOL_EXCEPTION", "E" + hostile, evalue + hostile, output + hostile, [frame], hostile)
    execution = Execution("f", "default", {"a": hostile}, "FAILURE", "t", NOW, failure=failure,
                          last_output=output + hostile, warnings=[hostile])  # fmt: skip
    text, page = execution.to_text(), execution.to_html()
    assert {tag for tag, _ in Elements(page).seen}.isdisjoint({"script", "img"})
    for shown in (text, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_locals_are_escaped_text():
    hostile = "<script>alert(1)</script>\x1b]0;title\x07\u202e\n"
    frame = KeptFrame(0, f"<{hostile}>", 1, hostile, hostile, in_tool=True)
    frames = [(frame, [Local(hostile, hostile, hostile, [2, 3])]), (frame, [])]
    text, page = text_of(execution_card.locals_card(frames)), html_of(execution_card.locals_card(frames))
    assert {tag for tag, _ in Elements(page).seen}.isdisjoint({"script", "img"})
    assert " (2, 3)" in text
    assert "no locals" in page
    for shown in (text, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "no frames" in html_of(execution_card.locals_card([]))


def test_the_notebook_gets_text_and_html(make):
    bundle = make()._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html"}
    assert str(make()) == bundle["text/plain"]


def test_a_refused_call_is_not_explained_as_failed_code(make):
    failure = Failure(
        "ARGUMENTS_INVALID", "ArgumentsInvalid", "`n` must be integer, got 'x'.", "", hint="Pass a number."
    )
    explanation = explain(failure)
    assert explanation.rule == "refused"
    assert explanation.hint == "Pass a number."
    text = make(failure=failure).to_text()
    assert text.count("must be integer") == 1
    assert text.count("Pass a number.") == 1


def test_an_explanation_as_text_has_no_raw_backticks() -> None:
    """U7: a page shows code in a sentence as code, and a terminal showed its backticks."""
    rows = subjects().values()
    texts = [text for subject in rows for row in subject.failure for text in row.texts]
    texts += [text for subject in rows for text in subject.facts]
    assert len(texts) > 100
    for text in texts:
        for sentence in (text.what, text.why, text.hint, text.fix):
            assert "`" not in text_of(Card("", below=(Line(Span(sentence, "ticked")),))), sentence


def test_a_card_is_a_named_region_with_a_heading_and_row_headers(make) -> None:
    """U8: a card had no heading, no landmark and no row headers."""
    seen = Elements(html_of(cards.card(make()))).seen
    frame, attributes = seen[0]
    assert (frame, attributes["role"]) == ("div", "region")
    assert attributes["aria-label"] == "fibonacci v1 failed: ValueError: bad"
    assert [of["aria-level"] for _, of in seen if of.get("role") == "heading"] == ["3"]
    assert [of["scope"] for name, of in seen if name == "th"].count("row") >= 2
    columns = [
        of["scope"] for name, of in Elements(html_of(listings.executions([make()]))).seen if name == "th"
    ]
    assert columns
    assert set(columns) == {"col"}

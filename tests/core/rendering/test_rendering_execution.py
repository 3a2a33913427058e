"""Cards of executions, in text and HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.core.contracts.failure import Failure, Frame, KeptFrame, Local
from healkit.core.rendering import execution_card, listings
from healkit.core.rendering import execution_card as cards
from healkit.core.rendering.document import Card, Line, Span
from healkit.core.rendering.execution_card import grouped
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.secrets.secret_names import word_set
from healkit.parts.explain.catalogue import subjects

#: What an untrusted notebook takes away; the words and their order are the same without.
FOR_SCREEN_READERS = {"role", "aria-label", "aria-level", "scope", "tabindex"}


TAGS = word_set("div b code mark pre details summary table thead tbody tr th td span del ins img ul li i")
#: Every card, as test_golden.py compares it.
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.html.txt"))


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
        if tag != "img":  # which has no end
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_recursion_is_one_item_with_its_depth():
    deep = Frame("<f@1>", 2, "f", "return f(n - 1)", in_tool=True)
    (group,) = grouped([deep] * 990)
    assert group.repeats == 990
    assert group.where == "f v1, line 2, in f  (× 990)"


def test_commands_fit_where_they_are_typed(make):
    execution = make(arguments={"text": "it's"}, persona="teacher")
    text = text_of(cards.card(execution, face="terminal"))
    assert """healkit run fibonacci --persona teacher --args '{"text": "it'"'"'s"}'""" in text
    assert "%run_tool" not in text
    assert """%run_tool fibonacci --persona teacher text="it's\"""" in execution.to_text()


@pytest.mark.parametrize("arguments", [{"…": "cut text"}, {"blob": "x" * 5000}])
def test_arguments_that_cannot_be_copied_are_not_offered(make, arguments):
    assert "%run_tool" not in make(arguments=arguments).to_text()


@pytest.mark.requirement("FACE-4")
def test_html_needs_no_style_script_or_roles():
    for file in GOLDEN:
        seen = Elements(file.read_text().replace("⏎\n", "")).seen
        for tag, attributes in seen:
            assert tag in TAGS, file.name
            assert attributes.keys() - FOR_SCREEN_READERS <= {
                "style",
                "open",
                "src",
                "alt",
                "width",
                "height",
            }
            assert has_literal_colours(attributes.get("style") or ""), file.name


def has_literal_colours(style: str) -> bool:
    """Return whether each colour of the page's theme follows a literal one, which stays where `var()` is removed."""
    literal = set()
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        if "var(" in value and name not in literal and not name.startswith("--"):
            return False
        literal.add(name)
    return True


def test_every_pair_of_colours_has_enough_contrast():
    styles = {style for file in GOLDEN for style in re.findall(r'style="([^"]*)"', file.read_text())}
    for style in styles:
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

    from healkit.core.runtime.execution import Execution

    hostile = "<script>alert(1)</script>\x1b]0;title\x07\u202e"
    frame = Frame("<f@1>", 1, "<img src=x onerror=y>", line + hostile, in_tool=True)
    failure = Failure("TOOL_EXCEPTION", "E" + hostile, evalue + hostile, output + hostile, [frame], hostile)
    execution = Execution("f", "default", {"a": hostile}, "FAILURE", "t", NOW, failure=failure,
                          last_output=output + hostile, warnings=[hostile])  # fmt: skip
    kept = execution_card.locals_card(
        [(KeptFrame(0, hostile, 1, hostile, line, in_tool=True), [Local(hostile, output, evalue)])]
    )
    text, page = execution.to_text() + text_of(kept), execution.to_html() + html_of(kept)
    assert {tag for tag, _ in Elements(page).seen}.isdisjoint({"script", "img"})
    for shown in (text, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


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

"""Markdown of a tool, attacked in every form of link."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from healkit.core.rendering.outputs import safe_markdown, safe_output
from healkit.core.secrets.secret_names import word_set

WORK_1 = pytest.mark.requirement("WORK-1")


def commonmark(text: str) -> str:
    """Draw as VS Code does, but with no validation of links of the parser's own."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True
    return parser.render(text)


PARSERS: dict[str, Callable[[str], str]] = {"commonmark": commonmark, "nbconvert": markdown2html_mistune}
#: What nbconvert and JupyterLab make of Markdown beside links: headings have links to themselves.
INERT = word_set(
    "a abbr b blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i input li mark math ol p pre s section "
    "span strong sub sup table tbody td th thead tr u ul"
)


class Page(HTMLParser):
    """Active parts of a page: schemes of its addresses as a browser reads them, and unexpected elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []  # in which a page's formulas are found
        self.feed(text)
        self.close()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INERT:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in {"style", "srcdoc", "formaction"}:
                self.found.append(f"{name}={value}")
            if name in {"href", "src", "xlink:href", "action", "data"}:
                self.links.append(value or "")
                scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", re.sub(r"[\t\r\n]", "", (value or "").strip("".join(map(chr, range(33))))))  # fmt: skip
                if scheme and scheme[1].lower() not in {"http", "https", "mailto"}:
                    self.found.append(value or "")


def active_parts(text: str) -> list[str]:
    return [f"{name}: {part}" for name, parse in PARSERS.items() for part in Page(parse(text)).found]


#: Ways to write one scheme.
SPELLINGS = (
    "javascript:", "JaVaScRiPt:", "&#106;avascript:", "&#x6A;avascript:", "&#0000106;avascript:", "java&#115;cript:",
    "javascript&colon;", "javascript&#58;", "javascript&#x3a;", "javascript\\:", "java\\script:", "\\javascript:",
    "java&Tab;script:", "java&NewLine;script:", "java&#9;script:", "java&#10;script:", "java\tscript:", "&#1;javascript:",
    "\x01javascript:", " javascript:", "\njavascript:", "&#32;javascript:", "&nbsp;javascript:", "\u200bjavascript:",
    "javascript&#58", "java\u00adscript:", "jav\u0430script:", "javascript\uff1a", "javascript&amp;colon;", "javascript%3A",
    "data:text/html,", "data:image/svg+xml,", "vbscript:", "file:///etc/passwd#", "blob:", "command:", "vscode://", "x-y.z+1:",
    "javascript&#0000000000000058;", "&#106&#97&#118&#97&#115&#99&#114&#105&#112&#116&#58", "j&#x61vascript:", "feed:javascript:",
    "view-source:javascript:", "jar:javascript:", "\\\njavascript:", "<javascript:", "javascript:/", "javascript:?", "data&colon;text/html;base64,",
)  # fmt: skip
#: Forms of links; `@` is the target.
FORMS = (
    "[x](@alert(1))", "[x](<@alert(1)>)", "[x]( @alert(1) )", "[x](\n@alert(1)\n)", "[x](\t@alert(1) 'title')", '[x](@alert(1) "t")',
    "[x](@alert(1) (t))", "[[x]](@alert(1))", "[`x`](@alert(1))", "[![x](https://a.example/b.png)](@alert(1))", "![x](@alert(1))",
    "!![x](@alert(1))", "!!![x][r]\n\n[r]: @alert(1)", "[x][r]\n\n[r]: @alert(1)", "[r][]\n\n[r]: @alert(1)", "[r]\n\n[r]: @alert(1)",
    "[r]\n\n[r]:\n@alert(1)", "[r]\n\n[r]:\n\t@alert(1)\n'title'", "[r]\n\n[r]: <@alert(1)>", "[r]\n\n   [r]: @alert(1)", "> [r]\n>\n> [r]: @alert(1)",
    "- [r]\n\n  [r]: @alert(1)", "1. [r]\n\n   [r]: @alert(1)", "[r\ns]\n\n[r\ns]: @alert(1)", "[r]: @alert(1)\n[r]", "[r\\]]\n\n[r\\]]: @alert(1)",
    "<@alert(1)>", "<@//alert(1)>", '<a href="@alert(1)">x</a>', "<a href='@alert(1)'>x</a>", "<a href=@alert(1)>x</a>", "<img src=@alert(1)>",
    "<iframe src=@alert(1)>", "<!-- --><a href=@alert(1)>x</a>", "<![CDATA[<a href=@alert(1)>]]>", "x\n<a\nhref=@alert(1)\n>x</a>",
    "|a|\n|-|\n|[x](@alert(1))|", "**[x](@alert(1))**", "~~[x](@alert(1))~~", "# [x](@alert(1))", "`a`[x](@alert(1))`b`", "```\n[x](@alert(1))",
    "$a$[x](@alert(1))$b$", "$\n```\n$\n[x](@alert(1))", "[x$y$](@alert(1))", "\\\\[x](@alert(1))", "\\\\\\[x](@alert(1))", "[x\\\\](@alert(1))",
    "[x]\\\\(@alert(1))", "[a](https://b.example 'x](@alert(1))')", "[a]('[b](@alert(1))')", "[^1]\n\n[^1]: [x](@alert(1))", "x\r[r]\r\r[r]: @alert(1)\r",
    "[x](https://a.example)[x](@alert(1))", "[x](()@alert(1))", "[x](\\(@alert(1))", "    [x](@alert(1))", "&#91;x](@alert(1))", "[x]&#40;@alert(1))",
)  # fmt: skip


@pytest.mark.slow
@WORK_1
@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_link_has_an_active_target_however_its_scheme_is_spelled(form: str) -> None:
    """Audit S5."""
    for spelling in SPELLINGS:
        text = form.replace("@", spelling)
        shown = safe_markdown(text)
        assert active_parts(shown) == [], (text, shown)
        assert safe_markdown(shown) == shown


def test_the_attacks_are_attacks() -> None:
    """Every form has an active part before it is cleaned, in one parser or in both, but for the decoys."""
    harmless = {form for form in FORMS if not active_parts(form.replace("@", "javascript:"))}
    assert len(harmless) <= 14, harmless
    spelled = {spelling for spelling in SPELLINGS if active_parts(f"[x](<{spelling}alert(1)>)") or active_parts(f"[x]({spelling}alert(1))")}  # fmt: skip
    assert len(spelled) >= 25, spelled


PIECES = st.sampled_from((
    *SPELLINGS, "[", "]", "(", ")", "](", "]:", "[r]", "[r]: ", "!", "<", ">", "\\", "\n", "\n\n", " ", "\t", "`", "```\n", "$", "$$",
    "&lt;", "&#60;", "a", "x", '"', "'", "|", "- ", "> ", "*", "_", "https://a.example", "<a href=", "<b>", "&#91;", "&#93;", "&#40;", "&amp;",
    "ftp://a.example", "@@0@@", "\\begin{a}", "\\end{a}", "\r", "\x00", "\u2028", "#", "~~~\n", "1. ", "    ",
))  # fmt: skip


@pytest.mark.slow
@WORK_1
@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example("]:\n[x]:javascript:alert(1)")
def test_no_text_of_a_links_pieces_draws_an_active_target(text: str) -> None:
    """Audit S5."""
    assert active_parts(safe_markdown(text)) == [], text


@pytest.mark.parametrize(
    "text",
    [
        "[docs](https://example.org/a?b=c&d=e#f)",
        "[docs](http://example.org 'title')",
        "[docs][r]\n\n[r]: https://example.org/a",
        "[below](#below) and [a page](page.html)",
        "[write](mailto:a@example.org)",
        "see https://example.org/a_b",
        "`handlers[name](event)` and `d[k]: int` and a[0]: 3",
        "```python\nx[0](a, b)\ntry[k]: pass\n```",
        "time: 10:30, ratio a:b, **bold**, [note]: see below",
        "| a | b |\n|:--|--:|\n| 1 | 2 |",
        "AT&T &amp; Co &copy; &lt;b&gt;",
    ],
)
def test_harmless_markdown_is_not_changed(text: str) -> None:
    assert safe_markdown(text) == text


def test_web_links_are_still_links() -> None:
    text = "[a](https://example.org/1) [b][r]\n\n[r]: https://example.org/2 'title'"
    for parse in PARSERS.values():
        assert Page(parse(safe_markdown(text))).links == ["https://example.org/1", "https://example.org/2"]


def formulas() -> Iterator[str]:
    for slash, name in itertools.product(
        ("\\", "\\\\", "\\\\\\", "&#92;", "&bsol;", "\\&#92;", "&#92;\\", "&#x5C", "\\\\&#92;"),
        ("href", "&#104;ref", "hr&#101;f", "require", "cssId"),
    ):
        yield f"{slash}{name}{{javascript:alert(1)}}{{x}}"


@pytest.mark.parametrize("formula", list(formulas()))
@pytest.mark.parametrize("kind", ["text/markdown", "text/html", "text/latex"])
def test_no_formula_makes_a_link(kind: str, formula: str) -> None:
    """Audit S5: a page's formulas are found in the text that is left when entities and escapes are read."""
    output = safe_output({"output_type": "display_data", "data": {kind: f"&#36;{formula}&#36;"}})
    assert output is not None
    texts = [output["data"][kind]]
    texts += [parse(texts[0]) for parse in PARSERS.values()] if kind == "text/markdown" else []
    for text in texts:
        seen = text if kind == "text/latex" else "".join(Page(text).words)
        assert not re.search(r"(?<!\\)(?:\\\\)*\\(?:href|require|cssId)", seen), (formula, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["](", "]:", "\\", "&#92;", "!", "](&", "&#", "data ", "]( ", "\\href", "[a]: x", "<"]
)
def test_the_work_grows_with_the_length_only(piece: str) -> None:
    """Audit R8's class: the work is counted by a regular expression's own steps, as a ratio of two sizes."""
    import time

    def took(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.thread_time()
        safe_markdown(text)
        return time.thread_time() - begun

    small = min(took(100_000) for _ in range(3))
    assert min(took(400_000) for _ in range(3)) < 10 * max(small, 0.002)

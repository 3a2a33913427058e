"""Output that a restricted tool may display."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healkit.core.rendering.outputs import safe_output


def shown(kind, value, **more):
    """Return the data that is left of one display."""
    output = safe_output({"output_type": "display_data", "data": {kind: value, **more}, "metadata": {}})
    assert output is not None
    return output["data"]


def html(text):
    return shown("text/html", text)["text/html"]


@pytest.mark.parametrize(
    "kind",
    [
        "application/javascript",
        "image/svg+xml",
        "application/vnd.jupyter.widget-view+json",
        "application/vnd.plotly.v1+json",
        "text/x-unknown",
    ],
)
def test_active_kinds_of_output_are_left_out_and_named(kind):
    assert shown(kind, "x").keys() == {"text/plain"}
    assert kind in shown(kind, "x")["text/plain"]
    assert shown(kind, "x", **{"text/plain": "plain"}) == {"text/plain": "plain"}


@pytest.mark.requirement("WORK-1")
def test_tables_plots_and_text_pass():
    table = '<table border="1" class="dataframe"><tbody><tr><td>1</td></tr></tbody></table>'
    assert html(f"<style scoped>td {{}}</style>{table}") == table
    assert html('<b style="color: red; background-color: #ffffff">x</b>').startswith('<b style="color')
    assert shown("image/png", "aGk=\n") == {"image/png": "aGk=\n"}
    assert shown("application/json", {"a": 1}) == {"application/json": {"a": 1}}
    assert shown("text/plain", ["a\n", "b"]) == {"text/plain": "a\nb"}
    assert shown("text/latex", "$x^2$") == {"text/latex": "$x^2$"}
    assert shown("text/markdown", "a < b & **c**") == {"text/markdown": "a < b & **c**"}


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        '<img src="https://example.org/leak.png">',
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        '<a href="data:text/html;base64,PHNjcmlwdD4=">x</a>',
        '<p style="background: url(https://example.org/x)">x</p>',
        '<p style="background-color: u\\72l(https://example.org/x)">x</p>',
        '<p style="position: fixed; top: 0">x</p>',
        '<p style="width: expression(alert(1))">x</p>',
        '<p class="jp-Dialog" id="main" onclick="alert(1)">x</p>',
        '<iframe src="https://example.org"></iframe>',
        "<svg><script>alert(1)</script></svg>",
        '<form action="https://example.org"><input><button>Sign in</button></form>',
        '<img src="data:image/svg+xml;base64,PHN2Zz4=">',
        '<meta http-equiv="refresh" content="0;url=https://example.org">',
    ],
)
def test_html_that_runs_fetches_or_moves_is_removed(attack):
    cleaned = html(attack).lower()
    for forbidden in ("script", "example.org", "onerror", "onclick", "fixed", "jp-dialog", "main", "url(", "svg",
                      "expression", "<form", "<input", "<button", "data:", "\\href", "<meta"):  # fmt: skip
        assert forbidden not in cleaned


def test_markdown_carries_no_html_and_fetches_nothing():
    text = shown("text/markdown", "![x](https://example.org/a.png) <img src=y> [j](javascript:alert(1))")
    assert text["text/markdown"].startswith("[x](https://example.org/a.png) &lt;img")
    assert "javascript:" not in text["text/markdown"]


@pytest.mark.parametrize("value", ["not base64 <script>", '"><script>', "", 3])
def test_an_image_must_be_base64(value):
    assert "image/png" not in shown("image/png", value)


def test_streams_and_errors_pass_as_text():
    assert safe_output({"output_type": "stream", "name": "x", "text": ["a", "b"]}) == {
        "output_type": "stream",
        "name": "stdout",
        "text": "ab",
    }
    error = safe_output({"output_type": "error", "ename": "E", "evalue": 3, "traceback": [1]})
    assert error == {"output_type": "error", "ename": "E", "evalue": "3", "traceback": ["1"]}


def test_metadata_keeps_an_images_size_only():
    output = safe_output(
        {
            "output_type": "execute_result",
            "data": {"image/png": "aGk="},
            "metadata": {"image/png": {"width": 10, "isolated": True}, "isolated": True},
        }
    )
    assert output["output_type"] == "display_data"
    assert output["metadata"] == {"image/png": {"width": 10}}


@pytest.mark.slow
@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
)
def test_any_output_of_a_worker_is_handled(claim):
    for kind in ("stream", "error", "display_data", "clear_output", None):
        safe_output({**claim, "output_type": kind})
        safe_output({"output_type": kind, "data": claim, "metadata": claim})


@pytest.mark.requirement("WORK-1")
@pytest.mark.parametrize(
    "kind", ["text/html", "text/markdown", "text/latex", "image/png", "application/json"]
)
@pytest.mark.parametrize(
    "value",
    ["\ud800", 10**5000, ["a", 10**5000], {"x": b"\xff"}, None, "\0"],
    ids=lambda value: type(value).__name__,
)
def test_a_kind_that_cannot_be_read_costs_itself_only(kind, value):
    """Audit R2."""
    data = shown(kind, value, **{"text/plain": "the text"})
    assert data["text/plain"] == "the text"
    json.dumps(data).encode()


def test_half_a_surrogate_pair_is_a_mark():
    """Audit R2: nh3 and the encoder of the notebook file both refuse it."""
    assert html("<b>a\ud800</b>") == "<b>a\ufffd</b>"
    error = safe_output(
        {"output_type": "error", "ename": "\ud800", "evalue": 10**5000, "traceback": ["\udfff"]}
    )
    assert error == {"output_type": "error", "ename": "\ufffd", "evalue": "<int>", "traceback": ["\ufffd"]}


@pytest.mark.requirement("WORK-1")
@pytest.mark.parametrize(
    "style",
    [
        "margin: -100px",
        "margin-top:-50px",
        "margin: 0 0 -1em 0",
        "MARGIN-LEFT : -.5em",
        "margin: 0 - 5px",
        "vertical-align: -900px",
        "margin-block-start: -9px",
        "margin: calc(0px - 100px)",
        "margin: \\2d 100px",
        "margin: 0/**/-100px",
        "color: red; margin-bottom: -3px; color: blue",
    ],
)
def test_no_output_moves_over_what_stands_beside_it(style):
    """Audit S5."""
    cleaned = html(f'<p style="{style}">x</p>')
    assert not re.search(r"-\s*[\d.]|calc|2d", cleaned)


@pytest.mark.parametrize(
    "style",
    ["height: 0", "max-height:1px; overflow: visible", "font-size:900px; line-height:0", "margin: 40px", "vertical-align: 900px"],
)  # fmt: skip
def test_what_may_be_larger_than_its_box_is_drawn_in_one_that_scrolls(style):
    """Audit S5: content over a box of no height covers the next cell."""
    cleaned = html(f'</div></div><p style="{style}">x</p></div><b>y</b></div>')
    assert cleaned.startswith('<div style="overflow:auto"><p style=')
    assert cleaned.endswith("<b>y</b></div>")
    assert cleaned.count("<div") == cleaned.count("</div") == 1

"""Lists, reports and diffs."""

from __future__ import annotations

import dataclasses
import datetime as dt

from IPython.lib.pretty import pretty
from rendering_samples import NOW

from healkit.core.contracts.execution import Grants
from healkit.core.rendering import listings
from healkit.core.rendering.execution_card import record_line
from healkit.core.rendering.listings import ShownVaultEntry
from healkit.core.rendering.to_text import text_of

ENTRY = ShownVaultEntry(
    "fibonacci",
    "default",
    2,
    "def fibonacci(n: int):\n    return n\n",
    "ab" * 32,
    description="The n-th.",
    input_schema={"properties": {"n": {"type": "integer"}, "k": {"default": 2}}, "required": ["n"]},
    grants=Grants(read=("/data",)),
)


def test_wide_characters_keep_columns_straight(make):
    text = text_of(listings.executions([make(tool_name="工具"), make()]))
    header, wide, plain = text.splitlines()
    assert header.index("status") == plain.index("✗ FAILURE") == wide.index("✗ FAILURE") + 2


def test_an_entry_in_short_says_how_to_run_it():
    assert repr(ENTRY) == "<VaultEntry fibonacci v2: 'def fibonacci(n: int):'>"
    assert pretty(ENTRY).splitlines() == [
        "fibonacci v2 (python)",
        "  persona  default",
        "  code     def fibonacci(n: int): … 2 lines",
        "  run it   hk.execute_tool('fibonacci', arguments={'n': …})",
        "  or       %run_tool fibonacci n=…",
    ]
    assert pretty([ENTRY]) == f"[{ENTRY!r}]"
    card = ENTRY._repr_html_()
    for words in (
        "fibonacci v2 (python)",
        "The n-th.",
        "def fibonacci(n: int): … 2 lines",
        ">%run_tool fibonacci n=…<",
    ):
        assert words in card


def test_a_run_command_takes_the_examples_arguments():
    known = dataclasses.replace(ENTRY, persona="teacher", examples=[{"arguments": {"n": 7}, "result": 13}])
    text = text_of(listings.saved(known))
    assert "hk.execute_tool('fibonacci', 'teacher', arguments={'n': 7})" in text
    assert "%run_tool fibonacci --persona teacher n=7" in text
    long = dataclasses.replace(ENTRY, examples=[{"arguments": {"n": "x" * 200}}])
    assert "%run_tool fibonacci n=…" in text_of(listings.saved(long))
    unfinished = dataclasses.replace(ENTRY, draft=True, code="\n  <b>def f(:")
    draft = text_of(listings.saved(unfinished))
    assert "%vault show fibonacci --edit" in draft
    assert "run_tool" not in draft
    card = dataclasses.replace(ENTRY, code="<i>f()", input_schema={})._repr_html_()
    assert "&lt;i&gt;f()" in card
    assert ">hk.execute_tool(&#x27;fibonacci&#x27;)<" in card


def test_times_are_shown_in_utc():
    from healkit.core.rendering.plain import duration, moment

    east = dt.timezone(dt.timedelta(hours=2))
    assert moment(NOW.astimezone(east)) == moment(NOW.replace(tzinfo=None)) == "2025-03-01 14:02:11 UTC"
    assert [duration(x) for x in (None, 3.24, 120.4, 2100.0, 250_000.0)] == [
        "–", "3.2 ms", "120 ms", "2.1 s", "4 min 10 s"
    ]  # fmt: skip


def test_an_mcp_client_is_named_beside_the_tool_that_it_ran(make):
    asked = make(client="claude-code 2.1.0, session 4f2a91c0", origin="mcp")
    assert "fibonacci v1 (claude-code 2.1.0)" in text_of(listings.executions([asked]))
    assert "· asked for by claude-code 2.1.0, session 4f2a91c0 ·" in record_line(asked)

"""Lists, reports and diffs."""

from __future__ import annotations

import dataclasses
import datetime as dt

from IPython.lib.pretty import pretty
from rendering_samples import NOW

from healkit import rendering
from healkit.contracts.records import Grants
from healkit.doctor import Check, DoctorReport, Status
from healkit.store.entries import Blame, RevisionInfo, VaultEntry

ENTRY = VaultEntry(
    "fibonacci",
    "default",
    2,
    "def fibonacci(n: int):\n    return n\n",
    "ab" * 32,
    description="The n-th.",
    input_schema={"properties": {"n": {"type": "integer"}, "k": {"default": 2}}, "required": ["n"]},
    grants=Grants(read=("/data",)),
)
REVISIONS = [
    RevisionInfo(1, None, "person", "", NOW, "cafebabe00", False, False, 2, 2),
    RevisionInfo(2, 1, "person", "base case", NOW, "deadbeef00", False, True, 3, 0),
]


def test_a_list_of_executions_is_cut_to_the_terminal(make):
    rows = [make(), make(value="x" * 300, log_id=5)]
    text = rendering.executions_text(rows, width=100)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "✗ FAILURE" in text
    assert "ValueError: bad" in rendering.executions_html(rows)


def test_what_a_list_leaves_out_is_said_below_it_with_what_lists_it(make):
    rows = [make(), make(origin="trial")]
    for shown in (rendering.executions_text, rendering.executions_html):
        text = shown(rows, left_out=1234, ask="%executions --trials")
        assert (
            "1,234 trial runs, such as a healing makes, not listed here; %executions --trials lists them"
            in text
        )
        assert "trial runs" not in shown(rows)
        assert "No executions match." in shown([], left_out=1, ask="x")
        assert "1 trial run, such as a healing makes, not listed here; x lists it too." in shown(
            [], left_out=1, ask="x"
        )
    own, tried = rendering.executions_text(rows).splitlines()[1:]
    assert "(trial)" in tried
    assert "(trial)" not in own
    assert "10,000 or more trial runs" in rendering.left_out_line(10_000, "x")


def test_empty_lists_say_so():
    assert rendering.executions_text([]) == "No executions match."
    assert "No executions match." in rendering.executions_html([])
    assert rendering.vault_text([]) == "The vault is empty."
    assert "The vault is empty." in rendering.vault_html([])


def test_wide_characters_keep_columns_straight(make):
    text = rendering.executions_text([make(tool_name="工具"), make()])
    header, wide, plain = text.splitlines()
    assert header.index("status") == plain.index("✗ FAILURE") == wide.index("✗ FAILURE") + 2


def test_an_entry_as_a_value_is_short_and_says_how_to_run_it():
    assert repr(ENTRY) == "<VaultEntry fibonacci@2 for 'default': 'def fibonacci(n: int):'>"
    assert pretty(ENTRY).splitlines() == [
        "fibonacci@2 (python)",
        "  persona  default",
        "  code     def fibonacci(n: int): … 2 lines",
        "  run it   hk.execute_tool('fibonacci', arguments={'n': …})",
        "  or       %run_tool fibonacci n=…",
    ]
    assert pretty([ENTRY]) == f"[{ENTRY!r}]"
    card = ENTRY._repr_html_()
    for words in (
        "fibonacci@2 (python)",
        "The n-th.",
        "def fibonacci(n: int): … 2 lines",
        ">%run_tool fibonacci n=…<",
    ):
        assert words in card


def test_an_entry_with_an_example_is_run_with_it_and_a_draft_is_not_run():
    known = dataclasses.replace(ENTRY, persona="teacher", examples=[{"arguments": {"n": 7}, "result": 13}])
    text = rendering.saved_text(known)
    assert "hk.execute_tool('fibonacci', 'teacher', arguments={'n': 7})" in text
    assert "%run_tool fibonacci --persona teacher n=7" in text
    long = dataclasses.replace(ENTRY, examples=[{"arguments": {"n": "x" * 200}}])
    assert "%run_tool fibonacci n=…" in rendering.saved_text(long)
    draft = rendering.saved_text(dataclasses.replace(ENTRY, draft=True, code="\n  <b>def f(:"))
    assert "%vault show fibonacci --edit" in draft
    assert "run_tool" not in draft
    card = dataclasses.replace(ENTRY, code="<i>f()", input_schema={})._repr_html_()
    assert "&lt;i&gt;f()" in card
    assert ">hk.execute_tool(&#x27;fibonacci&#x27;)<" in card


def test_an_entry_shows_what_it_takes_may_and_is():
    text = rendering.entry_text(ENTRY)
    assert "fibonacci@2 (python)" in text
    assert "n: integer, k: any = 2" in text
    assert "grants       read /data" in text
    assert "2 │     return n" in text
    assert "return n" in rendering.entry_html(ENTRY)
    assert "The n-th." in rendering.vault_text([ENTRY])
    assert "The n-th." in rendering.vault_html([ENTRY])


def test_a_history_marks_the_active_revision_and_its_failures():
    text, page = (
        rendering.history_text("fibonacci", REVISIONS),
        rendering.history_html("fibonacci", REVISIONS),
    )
    assert "@2 ● active" in text
    assert "base case" in text
    assert "✗ 2" in page


def test_a_diff_tells_sides_apart_by_sign_too():
    page = rendering.diff_html("--- a\n+++ b\n@@ -1 +1 @@\n-old <b>\n+new\n same\n", "fibonacci")
    assert ">-old &lt;b&gt;</del>" in page
    assert ">+new</ins>" in page
    assert "no difference" in rendering.diff_html("", "fibonacci")


def test_blame_says_whether_it_was_cured():
    cured = Blame("1:ab", 1, 4, NOW, None, 2, NOW, 3)
    assert rendering.blame_text("f", cured).startswith("f: failed 3 times, cured by @2")
    assert "cured by @2" in rendering.blame_html("f", cured)
    assert "not cured yet" in rendering.blame_html("f", Blame("1:ab", 1, 4, NOW, None, None, NOW, 1))
    assert rendering.blame_text("f", Blame()) == "f: no such failure on record."


def test_a_doctor_gives_the_fix_of_what_is_wrong_only():
    checks = [
        Check("seccomp", True, "filter", "unused fix"),
        Check("bubblewrap", False, "not found", "pip install it"),
    ]
    report = DoctorReport("landlock", checks, ["a bug in the kernel"])
    for shown in (rendering.doctor_text(report), rendering.doctor_html(report)):
        assert "landlock" in shown
        assert "pip install it" in shown
        assert "unused fix" not in shown
        assert "a bug in the kernel" in shown
    assert "tools are not run" in rendering.doctor_text(DoctorReport("", [], []))


def test_a_status_shows_a_problem_only_when_there_is_one():
    well, ill = (
        Status("sqlite:///x", "namespaces", 3, 2, 1, 0, ""),
        Status("sqlite:///x", "", 3, 2, 1, 0, "disk full"),
    )
    assert "problem" not in rendering.status_text(well)
    assert "disk full" in rendering.status_text(ill)
    assert "disk full" in rendering.status_html(ill)


def test_the_face_names_what_there_is_and_nothing_else():
    assert rendering.__all__ == sorted(rendering.__all__)
    assert all(callable(getattr(rendering, name)) for name in rendering.__all__)
    assert not hasattr(rendering, "nothing")


def test_times_are_utc_whatever_they_came_as():
    from healkit.rendering.plain import duration, moment

    east = dt.timezone(dt.timedelta(hours=2))
    assert moment(NOW.astimezone(east)) == moment(NOW.replace(tzinfo=None)) == "2025-03-01 14:02:11 UTC"
    assert [duration(x) for x in (None, 3.24, 120.4, 2100.0, 250_000.0)] == [
        "–", "3.2 ms", "120 ms", "2.1 s", "4 min 10 s"
    ]  # fmt: skip

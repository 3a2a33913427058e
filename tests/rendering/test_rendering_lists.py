"""Lists, reports and diffs."""

from __future__ import annotations

import dataclasses
import datetime as dt

from IPython.lib.pretty import pretty
from rendering_samples import NOW

from healkit.contracts.doctor import DoctorCheck, DoctorReport, Status
from healkit.contracts.execution import Grants
from healkit.contracts.vault import Blame, RevisionInfo
from healkit.rendering import listings
from healkit.rendering.listings import ShownVaultEntry
from healkit.rendering.to_html import html_of
from healkit.rendering.to_text import text_of

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
REVISIONS = [
    RevisionInfo(1, None, "person", "", NOW, "cafebabe00", False, False, 2, 2),
    RevisionInfo(2, 1, "person", "base case", NOW, "deadbeef00", False, True, 3, 0),
]


def test_a_list_of_executions_is_cut_to_the_terminal(make):
    rows = [make(), make(value="x" * 300, log_id=5)]
    text = text_of(listings.executions(rows), width=100)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "✗ FAILURE" in text
    assert "ValueError: bad" in html_of(listings.executions(rows))


def test_a_list_says_what_it_leaves_out_and_how_to_list_it(make):
    rows = [make(), make(origin="trial")]
    for write in (text_of, html_of):
        text = write(listings.executions(rows, left_out=234, ask="%executions --trials"))
        assert "234 trial runs, such as a healing makes, are hidden; %executions --trials lists them" in text
        assert "trial runs" not in write(listings.executions(rows))
        none = write(listings.executions([], left_out=1, ask="x"))
        assert "No executions match." in none
        assert "1 trial run, such as a healing makes, is hidden; x lists it too." in none
    own, tried = text_of(listings.executions(rows)).splitlines()[1:]
    assert "(trial)" in tried
    assert "(trial)" not in own
    assert "1,000 or more trial runs" in listings.left_out_line(1_000, "x")


def test_empty_lists_say_so():
    assert text_of(listings.executions([])) == "No executions match."
    assert "No executions match." in html_of(listings.executions([]))
    assert text_of(listings.vault([])) == "The vault is empty."
    assert "The vault is empty." in html_of(listings.vault([]))


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


def test_an_entry_shows_arguments_grants_and_code():
    text = text_of(listings.entry(ENTRY))
    assert "fibonacci v2 (python)" in text
    assert "n: integer, k: any = 2" in text
    assert "grants       read /data" in text
    assert "2 │     return n" in text
    assert "return n" in html_of(listings.entry(ENTRY))
    assert "The n-th." in text_of(listings.vault([ENTRY]))
    assert "The n-th." in html_of(listings.vault([ENTRY]))


def test_a_history_marks_the_active_revision_and_its_failures():
    text, page = (
        text_of(listings.history("fibonacci", REVISIONS)),
        html_of(listings.history("fibonacci", REVISIONS)),
    )
    assert "v2 ● active" in text
    assert "base case" in text
    assert "✗ 2" in page


def test_a_diff_marks_its_sides_by_sign_too():
    page = html_of(listings.diff("fibonacci", "--- a\n+++ b\n@@ -1 +1 @@\n-old <b>\n+new\n same\n"))
    assert ">-old &lt;b&gt;</del>" in page
    assert ">+new</ins>" in page
    assert "no difference" in html_of(listings.diff("fibonacci", ""))


def test_blame_says_whether_it_was_resolved():
    cured = Blame("1:ab", 1, 4, NOW, None, 2, NOW, 3)
    assert text_of(listings.blame("f", cured)).startswith("f: failed 3 times, resolved by f v2")
    assert "resolved by f v2" in html_of(listings.blame("f", cured))
    assert "not resolved" in html_of(listings.blame("f", Blame("1:ab", 1, 4, NOW, None, None, NOW, 1)))
    assert text_of(listings.blame("f", Blame())) == "f: no such failure on record."


def test_doctor_shows_fixes_only_for_failed_checks():
    checks = [
        DoctorCheck("seccomp", True, "filter", "unused fix"),
        DoctorCheck("bubblewrap", False, "not found", "pip install it"),
    ]
    report = DoctorReport("landlock", checks, ["a bug in the kernel"])
    for shown in (text_of(listings.doctor(report)), html_of(listings.doctor(report))):
        assert "landlock" in shown
        assert "pip install it" in shown
        assert "unused fix" not in shown
        assert "a bug in the kernel" in shown
    assert "tools are not run" in text_of(listings.doctor(DoctorReport("", [], [])))


def test_status_shows_a_problem_only_if_there_is_one():
    well, ill = (
        Status("sqlite:///x", "namespaces", 3, 2, 1, 0, ""),
        Status("sqlite:///x", "", 3, 2, 1, 0, "disk full"),
    )
    assert "problem" not in text_of(listings.status(well))
    assert "disk full" in text_of(listings.status(ill))
    assert "disk full" in html_of(listings.status(ill))


def test_times_are_shown_in_utc():
    from healkit.rendering.plain import duration, moment

    east = dt.timezone(dt.timedelta(hours=2))
    assert moment(NOW.astimezone(east)) == moment(NOW.replace(tzinfo=None)) == "2025-03-01 14:02:11 UTC"
    assert [duration(x) for x in (None, 3.24, 120.4, 2100.0, 250_000.0)] == [
        "–", "3.2 ms", "120 ms", "2.1 s", "4 min 10 s"
    ]  # fmt: skip

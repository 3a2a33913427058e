"""Every subject in text and in HTML, held against files.

`HEALKIT_REGENERATE=1 pytest tests/rendering/test_golden.py` writes the files in `golden/` anew; the diff is then
reviewed. HTML has a line break after each element, marked by `⏎`, so that a diff shows which element changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import subject_samples as s

from healkit import rendering
from healkit.rendering.asides import Aside, history_line
from healkit.rendering.healing import report_html, report_text
from healkit.tracing.diff import diff_runs

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"

Forms = tuple[str | None, str | None]


def of_executions() -> Iterator[tuple[str, Forms]]:
    for name, one in s.EXECUTIONS.items():
        yield f"execution-{name}", (rendering.execution_text(one), rendering.execution_html(one))
    frames = s.EXECUTIONS["frames"]
    yield "execution-terminal", (rendering.execution_text(frames, face="terminal"), None)
    aside = Aside(
        s.LOCALS, 2, history_line(7, s.NOW, 2), "Said once.", "fix", "`buses` is 0.", "Look at line 7."
    )
    noted = {"frames": 1, "note": "Local variables cannot be shown.", "aside": aside}
    yield (
        "execution-aside",
        (rendering.execution_text(frames, **noted), rendering.execution_html(frames, **noted)),
    )
    few = Aside(s.LOCALS[:2], 1, explained="what")
    one = s.EXECUTIONS["explained"]
    yield (
        "execution-aside-few",
        (rendering.execution_text(one, aside=few), rendering.execution_html(one, aside=few)),
    )
    done = s.EXECUTIONS["success"]
    yield "success", (rendering.success_line(done), rendering.success_html(done))
    yield "locals", (rendering.locals_text(s.KEPT), rendering.locals_html(s.KEPT))
    yield "locals-none", (rendering.locals_text([]), rendering.locals_html([]))
    rows, left = s.ROWS, {"left_out": 1234, "ask": "%executions --trials"}
    yield "executions", (rendering.executions_text(rows, **left), rendering.executions_html(rows, **left))
    yield "executions-narrow", (rendering.executions_text(rows, 100), None)
    yield "executions-none", (rendering.executions_text([], **left), rendering.executions_html([], **left))


def of_the_vault() -> Iterator[tuple[str, Forms]]:
    entries = {"sample": s.ENTRY, "draft": s.DRAFT, "sql": s.SQL}
    yield (
        "vault",
        (rendering.vault_text(list(entries.values())), rendering.vault_html(list(entries.values()))),
    )
    yield "vault-narrow", (rendering.vault_text(list(entries.values()), 60), None)
    yield "vault-none", (rendering.vault_text([]), rendering.vault_html([]))
    for name, entry in entries.items():
        yield f"entry-{name}", (rendering.entry_text(entry), rendering.entry_html(entry))
        yield f"saved-{name}", (rendering.saved_text(entry), rendering.saved_html(entry))
        yield f"grants-{name}", (rendering.grants_text(entry), rendering.grants_html(entry))
    about = "average_delay", s.REVISIONS
    yield "history", (rendering.history_text(*about), rendering.history_html(*about))
    yield "history-narrow", (rendering.history_text(*about, 80), None)
    for name, blame in s.BLAMES.items():
        yield (
            f"blame-{name}",
            (rendering.blame_text("average_delay", blame), rendering.blame_html("average_delay", blame)),
        )
    yield "diff", (None, rendering.diff_html(s.DIFF, "average_delay"))
    yield "diff-none", (None, rendering.diff_html("", "average_delay"))
    yield "diff-untitled", (None, rendering.diff_html(s.DIFF) + rendering.diff_html(""))


def of_reports() -> Iterator[tuple[str, Forms]]:
    for name, report in s.DOCTORS.items():
        yield f"doctor-{name}", (rendering.doctor_text(report), rendering.doctor_html(report))
    for name, status in s.STATUSES.items():
        yield f"status-{name}", (rendering.status_text(status), rendering.status_html(status))
    yield "groups", (rendering.groups_text(s.GROUPS), rendering.groups_html(s.GROUPS))
    yield "groups-narrow", (rendering.groups_text(s.GROUPS, 120), None)
    yield "groups-none", (rendering.groups_text([]), rendering.groups_html([]))
    yield "summary", (rendering.summary_text(s.SUMS), rendering.summary_html(s.SUMS))
    by = ["day", "persona", "revision"]
    yield "summary-by", (rendering.summary_text(s.SUMS, by), rendering.summary_html(s.SUMS, by))
    yield "summary-none", (rendering.summary_text([]), rendering.summary_html([]))
    requests = list(s.REQUESTS.values())
    yield "requests", (rendering.requests_text(requests), rendering.requests_html(requests))
    yield "requests-narrow", (rendering.requests_text(requests, 100), rendering.requests_html(requests[1:]))
    yield "requests-none", (rendering.requests_text([]), rendering.requests_html([]))
    for name, request in s.REQUESTS.items():
        yield f"request-{name}", (rendering.request_text(request), rendering.request_html(request))
    yield "request-terminal", (rendering.request_text(s.REQUESTS["pending"], "terminal"), None)
    for name, healed in s.REPORTS.items():
        yield f"healing-{name}", (report_text(healed), report_html(healed))


def of_runs() -> Iterator[tuple[str, Forms]]:
    healing, first, second = map(s.recorded_run, ("healing", "first", "second"))
    damaged = s.damaged_run()
    for name, run in {"healing": healing, "first": first, "damaged": damaged}.items():
        yield f"run-{name}", (rendering.run_text(run), None)
        yield f"problems-{name}", (rendering.problems_text(run), None)
    yield "run-narrow", (rendering.run_text(healing, 100), None)
    yield "runs", (rendering.runs_text([healing, first, damaged]), None)
    yield "runs-none", (rendering.runs_text([]), None)
    yield "run-diff", (rendering.run_diff_text(diff_runs(first, second)), None)
    yield "run-diff-ends", (rendering.run_diff_text(diff_runs(first, damaged)), None)
    yield "run-diff-none", (rendering.run_diff_text(diff_runs(first, first)), None)
    for name, run in {"healing": healing, "first": first}.items():
        story = rendering.story_of(run)
        yield f"timeline-{name}", (rendering.timeline_text(story), rendering.timeline_html(story))
    story = s.draft_story(rendering.story_of(healing))
    yield "timeline-draft", (rendering.timeline_text(story, 90), rendering.timeline_html(story))


@pytest.mark.parametrize("subjects", [of_executions, of_the_vault, of_reports, of_runs])
def test_each_subject_reads_as_its_golden_files_say(
    subjects: Callable[[], Iterator[tuple[str, Forms]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    for name, (text, html) in subjects():
        for ending, form in (("txt", text), ("html", None if html is None else html.replace("><", ">⏎\n<"))):
            file = GOLDEN / f"{name}.{ending}"
            if form is None:
                assert not file.exists()
                continue
            if os.environ.get("HEALKIT_REGENERATE"):
                file.write_text(f"{form}\n")
            assert f"{form}\n" == file.read_text(), file.name


def test_no_golden_file_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    drawn = {
        name for subjects in (of_executions, of_the_vault, of_reports, of_runs) for name, _ in subjects()
    }
    assert {file.stem for file in GOLDEN.iterdir()} == drawn

"""Every subject in text and in HTML, compared with files.

`HEALKIT_REGENERATE=1 pytest tests/core/rendering/test_golden.py` writes the files in `golden/` anew; the diff is then
reviewed. HTML has a line break after each element, marked by `⏎`, so that a diff shows which element changed. With these
marks a file is not a valid page, so its name ends in `.txt`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import subject_samples as s
from panes_samples import PANES

from healkit.core.rendering import execution_card, listings, plain
from healkit.core.rendering.document import Document
from healkit.core.rendering.execution_card import Aside, history_line
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.faces.commands import cards
from healkit.parts.decide import render_audit as audit
from healkit.parts.decide import render_summaries as summaries
from healkit.parts.doctor import cards as doctor_cards
from healkit.parts.heal import render as healing
from healkit.parts.heal import render_requests, timeline
from healkit.parts.runs import render_runs as runs
from healkit.parts.runs.reader import diff_runs
from healkit.parts.views import render as views_render

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"

Forms = tuple[str | None, str | None]


def both(document: Document) -> Forms:
    return text_of(document), html_of(document)


def text_only(document: Document, width: int | None = None) -> Forms:
    return text_of(document, width), None


def of_executions() -> Iterator[tuple[str, Forms]]:
    for name, one in s.EXECUTIONS.items():
        yield f"execution-{name}", both(execution_card.card(one))
    frames = s.EXECUTIONS["frames"]
    yield "execution-terminal", text_only(execution_card.card(frames, face="terminal"))
    aside = Aside(
        s.LOCALS,
        2,
        history_line(7, s.NOW, "average_delay v2"),
        "Said once.",
        "fix",
        "`buses` is 0.",
        "Look at line 7.",
    )
    note = "Local variables cannot be shown."
    yield "execution-aside", both(execution_card.card(frames, frames=1, note=note, aside=aside))
    few = Aside(s.LOCALS[:2], 1, explained="what")
    yield "execution-aside-few", both(execution_card.card(s.EXECUTIONS["explained"], aside=few))
    yield "success", both(execution_card.success(s.EXECUTIONS["success"]))
    yield "locals", both(execution_card.locals_card(s.KEPT))
    yield "locals-none", both(execution_card.locals_card([]))
    left = {"left_out": 1000, "ask": "%executions --trials"}
    yield "executions", both(listings.executions(s.ROWS, **left))
    yield "executions-narrow", text_only(listings.executions(s.ROWS), 100)
    yield "executions-none", both(listings.executions([], **left))


def of_the_vault() -> Iterator[tuple[str, Forms]]:
    entries = {"sample": s.ENTRY, "draft": s.DRAFT, "sql": s.SQL}
    yield "vault", both(cards.vault(list(entries.values())))
    yield "vault-narrow", text_only(cards.vault(list(entries.values())), 60)
    yield "vault-none", both(cards.vault([]))
    for name, entry in entries.items():
        yield f"entry-{name}", both(cards.entry(entry))
        yield f"saved-{name}", both(listings.saved(entry))
        yield f"grants-{name}", both(cards.grants(entry))
    history = cards.history_card("average_delay", s.REVISIONS)
    yield "history", both(history)
    yield "history-narrow", text_only(history, 80)
    for name, blame in s.BLAMES.items():
        yield f"blame-{name}", both(cards.blame_card("average_delay", blame))
    yield "diff", both(cards.diff("average_delay", s.DIFF))
    yield "diff-none", both(cards.diff("average_delay", ""))


def of_reports() -> Iterator[tuple[str, Forms]]:
    for name, report in s.DOCTORS.items():
        yield f"doctor-{name}", both(doctor_cards.doctor(report))
    for name, status in s.STATUSES.items():
        yield f"status-{name}", both(doctor_cards.status_card(status))
    yield "views", both(views_render.views(list(s.VIEWS.values())))
    yield "views-none", both(views_render.views([]))
    yield "view-frame", both(views_render.view(s.VIEWS["frame"], s.PREVIEW))
    yield "view-evicted", both(views_render.view(s.VIEWS["evicted"]))
    yield "groups", both(cards.groups(s.GROUPS))
    yield "groups-narrow", text_only(cards.groups(s.GROUPS), 120)
    yield "groups-none", both(cards.groups([]))
    yield "summary", both(cards.summary(s.SUMS))
    yield "summary-by", both(cards.summary(s.SUMS, ["day", "persona", "revision"]))
    yield "summary-none", both(cards.summary([]))
    for name, summed in s.SUMMARIES.items():
        yield f"summarize-{name}", both(summaries.summary_card(summed))
    yield "summarize-narrow", text_only(summaries.summary_card(s.SUMMARIES["text"]), 60)
    found = list(s.REQUESTS.values())
    yield "requests", both(render_requests.requests(found))
    yield (
        "requests-narrow",
        (text_of(render_requests.requests(found), 100), html_of(render_requests.requests(found[1:]))),
    )
    yield "requests-none", both(render_requests.requests([]))
    for name, request in s.REQUESTS.items():
        yield f"request-{name}", both(render_requests.request(request))
    yield "request-terminal", text_only(render_requests.request(s.REQUESTS["pending"], "terminal"))
    for name, healed in s.REPORTS.items():
        yield f"healing-{name}", both(healing.report_card(healed))


def of_runs() -> Iterator[tuple[str, Forms]]:
    healed, first, second = map(s.recorded_run, ("healing", "first", "second"))
    damaged = s.damaged_run()
    for name, run in {"healing": healed, "first": first, "damaged": damaged}.items():
        yield f"run-{name}", text_only(runs.run_card(run))
        yield f"problems-{name}", text_only(runs.problem_list(run))
    yield "run-narrow", text_only(runs.run_card(healed), 100)
    yield "runs", text_only(runs.run_list([healed, first, damaged]))
    yield "runs-none", text_only(runs.run_list([]))
    yield "run-diff", text_only(runs.run_diff(diff_runs(first, second)))
    yield "run-diff-ends", text_only(runs.run_diff(diff_runs(first, damaged)))
    yield "run-diff-none", text_only(runs.run_diff(diff_runs(first, first)))
    for name, run in {"healing": healed, "first": first}.items():
        yield f"timeline-{name}", both(timeline.timeline_card(timeline.story_of(run)))
    story = timeline.timeline_card(s.draft_story(timeline.story_of(healed)))
    yield "timeline-draft", (plain.clipped(text_of(story), 90), html_of(story))


def of_audited() -> Iterator[tuple[str, Forms]]:
    for name, panes in PANES.items():
        yield f"audited-{name}", both(audit.audit_card(panes))


ALL = [of_executions, of_the_vault, of_reports, of_runs, of_audited]


@pytest.mark.slow
@pytest.mark.parametrize("subjects", ALL)
def test_each_subject_matches_its_golden_files(
    subjects: Callable[[], Iterator[tuple[str, Forms]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    for name, (text, html) in subjects():
        for ending, form in (
            ("txt", text),
            ("html.txt", None if html is None else html.replace("><", ">⏎\n<")),
        ):
            file = GOLDEN / f"{name}.{ending}"
            if form is None:
                assert not file.exists()
                continue
            if os.environ.get("HEALKIT_REGENERATE"):
                file.write_text(f"{form}\n")
            assert f"{form}\n" == file.read_text(), file.name


def test_no_card_names_a_colour_by_a_word_that_an_untrusted_notebook_keeps() -> None:
    """JupyterLab keeps `color:var(--hk-red)` there, since it holds a colour's name, and drops what defines it."""
    names = {
        name
        for file in GOLDEN.glob("*.html.txt")
        for name in re.findall(r"var\(--([\w-]+)", file.read_text())
    }
    words = {word for name in names for word in name.split("-")}
    assert not words & {
        "red",
        "green",
        "blue",
        "purple",
        "orange",
        "yellow",
        "grey",
        "gray",
        "black",
        "white",
    }


def test_no_golden_file_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    drawn = {name for subjects in ALL for name, _ in subjects()}
    assert {file.name.partition(".")[0] for file in GOLDEN.iterdir()} == drawn


def test_no_card_is_large_in_a_saved_notebook() -> None:
    """U8: a notebook of cards held 210 kB of styles; a card of all there is stays below 40 kB."""
    sizes = {file.name: file.stat().st_size for file in GOLDEN.glob("*.html.txt")}
    assert {name: size for name, size in sizes.items() if size > 40_000} == {}
    assert sorted(sizes.values())[len(sizes) // 2] < 12_000

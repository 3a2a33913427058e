"""Report of a notebook's check: card, GitHub, JUnit.

All forms show the same words, which pass through `to_text`. So texts from a notebook contain no secrets, move no
cursor, and give no orders to a service that reads the log.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from healkit.core.rendering import plain
from healkit.core.rendering.document import Card, Code, Diff, Fact, Facts, Line, Part, Span, Tone
from healkit.core.rendering.to_text import text_of
from healkit.parts.heal.records import CheckedCell, NotebookFailure, NotebookReportData
from healkit.parts.heal.render import changed

_HEADS: dict[str, tuple[str, Tone]] = {
    "passed": ("every cell ran", "good"),
    "healed": ("fails; with the fix, every cell ran", "warn"),
    "failed": ("fails", "bad"),
    "stopped": ("stopped", "bad"),
}
#: Beginning of what GitHub's runner takes for an order: `::error`, `##[error]`.
_ORDER = re.compile(r"^(\s*:)(?=:)|(#)(?=#\[)", re.MULTILINE)
_NOT_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def notebook_card(report: NotebookReportData, *, written: bool = False) -> Card:
    """Build the card of a check.

    written: Whether the fixes are in the notebook now.
    """
    head, tone = _HEADS[report.outcome]
    mark = "✓" if tone == "good" else "✗"
    if written and report.outcome == "healed":
        mark, tone, head = "✓", "good", "fixed; every cell ran"
    elif written:
        head = f"{head}; fixes of other cells were written"
    ran = f"{report.cells_run} of {plain.count(len(report.cells), 'cell')}"
    title = f"{report.path}: {head} ({ran}, {plain.duration(report.duration_s * 1000)})"
    parts: list[Part] = []
    for failure in report.failures:
        parts += [Line(_title(failure)), *_about(failure)]
    parts += [Line(Span(remark.sentence, "ticked"), label="order") for remark in report.remarks]
    return Card(title, mark, tone, (), parts)


def _title(failure: NotebookFailure) -> str:
    line = f", line {failure.line}" if failure.line else ""
    summary = plain.one_line(failure.failure.summary, 200)
    return f"cell {failure.number} (In [{failure.prompt}]){line}: {summary}"


def _about(failure: NotebookFailure, *, why: bool = False) -> Iterator[Part]:
    """Yield the failing line, the known facts about the failure, and the fix; why: also why it happened."""
    error, report = failure.failure, failure.report
    place = (f"<In [{failure.prompt}]>", failure.line)
    yield from (Code(f.line.strip(), indent=6) for f in error.frames if (f.filename, f.lineno) == place)
    facts: list[tuple[str, Fact]] = []
    if failure.explanation and not (report is not None and report.refutes):
        facts.append(("what", Span(failure.explanation, "ticked")))
        facts += [("why", Span(failure.why, "ticked"))] if why and failure.why else []
    frame = error.tool_frame
    if frame is not None and frame.filename != place[0]:
        facts.append(("raised", Span(frame.place)))
    fix = report.fix if report is not None else None
    if report is not None and fix is None:
        facts.append(("healing", Span(report.reason, "ticked")))
    if fix is not None:
        outcome = (
            "the notebook got further with it"
            if failure.fixed
            else "the notebook did not get further with it"
        )
        facts.append(("fix", Span(f"{fix.cell}: {fix.reason}", "ticked")))
        facts.append(("seen", Span(f"{fix.said} In a complete run, {outcome}.")))
        facts += [("not known", Span(sentence, "ticked")) for sentence in fix.unknown if not failure.fixed]
    yield Facts(facts, indent=4)
    if fix is not None:
        yield Diff(changed(fix), indent=4)


def log_text(report: NotebookReportData, *, written: bool = False) -> str:
    """Write the card for a terminal or a service's log; no line of it is an order to GitHub's runner."""
    return _ORDER.sub(r"\g<0> ", text_of(notebook_card(report, written=written)))


def failure_text(failure: NotebookFailure, *, titled: bool = True) -> str:
    """Write all that is known of one failure, as the report of a test."""
    return harmless(text_of(Card(_title(failure) if titled else "", parts=[*_about(failure, why=True)])))


def data(report: NotebookReportData) -> dict[str, Any]:
    """Return a check as JSON data, with the diff of each fix."""
    document: dict[str, Any] = msgspec.to_builtins(report)
    for failure, entry in zip(report.failures, document["failures"], strict=True):
        if failure.report is not None and failure.report.fix is not None:
            entry["report"]["fix"]["diff"] = failure.report.fix.diff
    return {**document, "cells_run": report.cells_run}


def github(report: NotebookReportData) -> str:
    """Write an annotation for each failure and remark, in the form of GitHub's workflow commands.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    notices = [
        ("error", failure.file_line, _said(_title(failure)), text_of(Card(parts=[*_about(failure)])))
        for failure in report.failures
    ]
    notices += [("warning", 1, "cell order", _said(remark.sentence)) for remark in report.remarks]
    return "\n".join(
        f"::{level} file={_property(report.path)},line={line},title={_property(title)}::{_escaped(text)}"
        for level, line, title, text in notices
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _said(sentence: str) -> str:
    return text_of(Card(parts=[Span(sentence, "ticked")]))


def junit(reports: Sequence[NotebookReportData]) -> str:
    """Write a test suite for each notebook and a test case for each code cell, in the form of Ant's reports."""
    suites = ET.Element("testsuites")
    for report in reports:
        failed = {failure.number: failure for failure in report.failures}
        cases = [_case(report, cell, failed.get(cell.number)) for cell in report.cells]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=harmless(report.path),
            tests=str(len(cases)),
            failures=str(sum(case.find("failure") is not None for case in cases)),
            skipped=str(sum(case.find("skipped") is not None for case in cases)),
            time=f"{report.duration_s:.3f}",
        )
        suite.extend(cases)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def _case(report: NotebookReportData, cell: CheckedCell, failure: NotebookFailure | None) -> ET.Element:
    name, path = f"cell {cell.number}", harmless(report.path)
    case = ET.Element("testcase", classname=path, name=name, time=f"{cell.duration_s:.3f}")
    if failure is not None:
        about = {"message": harmless(_said(_title(failure))), "type": harmless(_said(failure.failure.ename))}
        ET.SubElement(case, "failure", about).text = harmless(text_of(Card(parts=[*_about(failure)])))
    elif cell.state == "not_run":
        ET.SubElement(case, "skipped")
    return case


def harmless(text: str) -> str:
    """Return a text as a terminal, a service's log and XML may have it."""
    return _NOT_XML.sub("\ufffd", _ORDER.sub(r"\g<0> ", plain.visible(text)))

"""Patch requests: the list, and one with its diff."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.contracts.requests import PatchRequest
from healkit.rendering import markup as m
from healkit.rendering import plain
from healkit.rendering.markup import visible
from healkit.rendering.reports import diff_lines

_HEADERS = ("request", "state", "tool", "author", "verdict", "when", "reason")
_NONE = "No patch requests."
_MARKS = {"pending": "?", "accepted": "✓", "declined": "✗", "overtaken": "!"}
_COLOURS = {
    "pending": (m.AMBER, m.AMBER_SOFT),
    "accepted": (m.GREEN, m.GREEN_SOFT),
    "declined": (m.MUTED, m.SOFT),
    "overtaken": (m.RED, m.RED_SOFT),
}


def requests_text(requests: Sequence[PatchRequest], width: int | None = None) -> str:
    """One line a request."""
    if not requests:
        return _NONE
    return plain.text_table(_HEADERS, [_row(request) for request in requests], width)


def requests_html(requests: Sequence[PatchRequest]) -> str:
    """The same as a card; each request opens to its diff."""
    if not requests:
        return m.card(m.section(_NONE))
    rows = []
    for request in requests:
        number, state, tool, *rest = _row(request)
        word = m.tag("b", state, style=f"color:{_COLOURS[request.state][0]};white-space:nowrap")
        *words, when, reason = rest
        rows.append(
            (
                number,
                word,
                m.chip(tool),
                *words,
                m.moment(when),
                m.join([m.ticked(reason), m.fold("diff", *_diff(request))]),
            )
        )
    accent = m.AMBER if any(request.state == "pending" for request in requests) else m.BLUE
    return m.card(m.section(m.table(_HEADERS, rows)), accent=accent)


def request_text(request: PatchRequest, face: str = "notebook") -> str:
    """One request in full: who, why, with which verdict, and the diff; face is `notebook` or `terminal`."""
    facts = [f"  {name:<10} {visible(value)}" for name, value in _facts(request)]
    steps = [f"  {name:<10} {command}" for name, command in _steps(request, face)]
    return "\n".join(
        [f"{_MARKS[request.state]} {_title(request)}", *facts, *steps, "", visible(request.diff)]
    )


def request_html(request: PatchRequest) -> str:
    """The same as a card."""
    ink, paper = _COLOURS[request.state]
    head = m.heading(_MARKS[request.state], _title(request), ink, paper)
    facts = m.facts(
        [(name, m.block(value) if "\n" in value else m.ticked(value)) for name, value in _facts(request)]
    )
    steps = m.facts(
        [(name, m.chip(command, m.BLUE, m.BLUE_SOFT)) for name, command in _steps(request, "notebook")]
    )
    tail = [m.section(steps)] if request.state == "pending" else []
    return m.card(head, m.section(facts), *_diff(request), *tail, accent=ink)


def _diff(request: PatchRequest) -> list[m.Html]:
    return diff_lines(request.diff)


def _title(request: PatchRequest) -> str:
    became = "" if request.revision is None else f", now @{request.revision}"
    return f"Patch request {request.id} for {request.label}: {request.state}{became}"


def _row(request: PatchRequest) -> tuple[str, ...]:
    state = f"{_MARKS[request.state]} {request.state}"
    when = plain.moment(request.created_at)
    reason = plain.one_line(request.reason, 160)
    return (str(request.id), state, request.label, _by(request), request.said, when, reason)


def _by(request: PatchRequest) -> str:
    """`search`, or `model (qwen3)` where the advisor has a name of its own."""
    named = request.advisor and request.advisor != request.author
    return f"{request.author} ({request.advisor})" if named else request.author


def _facts(request: PatchRequest) -> list[tuple[str, str]]:
    facts = [("author", _by(request)), ("verdict", request.said)]
    facts += [("reason", plain.one_line(request.reason, 400))] if request.reason else []
    facts += [("answers", f"log row {request.motivating_log_id}")] if request.motivating_log_id else []
    facts += [("run", request.run_id)] if request.run_id else []
    facts.append(("proposed", plain.moment(request.created_at)))
    if request.decided_at is not None:
        facts.append(("decided", f"{plain.moment(request.decided_at)} by {request.decided_by}"))
    return [*facts, ("note", request.note)] if request.note else facts


def _steps(request: PatchRequest, face: str) -> list[tuple[str, str]]:
    """What can be done about it, as commands of that face."""
    if request.state != "pending":
        return []
    command = "%healkit requests" if face == "notebook" else "healkit requests"
    return [(word, f"{command} {word} {request.id}") for word in ("accept", "decline")]

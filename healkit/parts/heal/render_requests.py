"""Patch requests as cards: the list, and one of them."""

from __future__ import annotations

from collections.abc import Sequence

from healkit.core.rendering import plain
from healkit.core.rendering.document import (
    Card,
    Cell,
    Code,
    Diff,
    Fact,
    Facts,
    Fold,
    Only,
    Part,
    Span,
    Table,
    Tone,
)
from healkit.core.rendering.execution_card import Face
from healkit.parts.heal.records import PatchRequest

_REQUESTS = ("request", "state", "tool", "author", "verdict", "when", "reason")


_MARKS = {"pending": "?", "accepted": "✓", "declined": "✗", "overtaken": "!"}


_TONES: dict[str, Tone] = {"pending": "warn", "accepted": "good", "declined": "quiet", "overtaken": "bad"}


def requests(requests: Sequence[PatchRequest]) -> Card:
    """Build the list of requests; on a page each opens to its diff."""
    if not requests:
        return Card(parts=("No patch requests.",))
    pending = any(request.state == "pending" for request in requests)
    table = Table(_REQUESTS, [_request_row(request) for request in requests])
    return Card(tone="warn" if pending else "info", parts=(table,))


def _request_row(request: PatchRequest) -> tuple[Cell, ...]:
    first = request.diff.partition("\n")[0]
    further = plain.one_line(first, 160) if first.startswith("!") else ""  # reach.told_reach
    return (
        str(request.id),
        Span(f"{_MARKS[request.state]} {request.state}", "state", _TONES[request.state]),
        Span(request.label, "code"),
        _by(request),
        request.said,
        Span(plain.moment(request.created_at), "moment"),
        (
            *([Span(f"{further} ", "state", "warn")] if further else []),
            Span(plain.one_line(request.reason, 160), "ticked"),
            Fold("diff", (Diff(request.diff),)),
        ),
    )


def request(request: PatchRequest, face: Face = "notebook", active: int | None = None) -> Card:
    """Build the card of one request: who, why, with which verdict, and the diff.

    face: The face for the commands.
    active: The tool's current active revision, if known.
    """
    became = "" if request.revision is None else f", {became_of(request, active)}"
    steps = Facts(_steps(request, face))
    parts: list[Part] = [Facts(_facts(request))]
    if steps.rows:
        parts.append(Only("text", steps))
    parts += [Only("text", ""), Diff(request.diff)]
    if steps.rows:
        parts.append(
            Only("html", steps)
        )  # on a page the next steps follow the diff; a terminal shows its end first
    return Card(
        f"Patch request {request.id} for {request.label}: {request.state}{became}",
        _MARKS[request.state],
        _TONES[request.state],
        parts=parts,
    )


def became_of(request: PatchRequest, active: int | None) -> str:
    """Say which revision an accepted request became, and which one is active if that is another one."""
    if active is None or active == request.revision:
        return f"now v{request.revision}"
    return f"as v{request.revision}; v{active} is active by now"


def _by(request: PatchRequest) -> str:
    """Name the author: `search`, or `model (qwen3)` if the advisor has its own name."""
    named = request.advisor and request.advisor != request.author
    return f"{request.author} ({request.advisor})" if named else request.author


def _facts(request: PatchRequest) -> list[tuple[str, Fact]]:
    facts = [("author", _by(request)), ("verdict", request.said)]
    facts += [("reason", plain.one_line(request.reason, 400))] if request.reason else []
    facts += [("answers", f"log row {request.motivating_log_id}")] if request.motivating_log_id else []
    facts += [("run", request.run_id)] if request.run_id else []
    facts.append(("proposed", plain.moment(request.created_at)))
    if request.decided_at is not None:
        facts.append(("decided", f"{plain.moment(request.decided_at)} by {request.decided_by}"))
    facts += [("note", request.note)] if request.note else []
    return [(name, Code(value) if "\n" in value else Span(value, "ticked")) for name, value in facts]


def _steps(request: PatchRequest, face: Face) -> list[tuple[str, Fact]]:
    """List the possible next steps, as commands of that face."""
    if request.state != "pending":
        return []
    command = "%healkit requests" if face == "notebook" else "healkit requests"
    return [(word, Span(f"{command} {word} {request.id}", "code", "info")) for word in ("accept", "decline")]

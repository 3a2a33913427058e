"""Queries for collected traces, and their answers as JSON."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.errors import RequestRefused, UsageInvalid
from healkit.parsing import parse_since

if TYPE_CHECKING:
    from healkit.store.collected import TracePage
    from healkit.store.models import CollectedTrace

DEFAULT_LIMIT, MAX_LIMIT = 50, 100

#: The largest row number that both databases can compare with.
_MAX_ID = 2**31 - 1
_YES, _NO = {"true", "1", "yes"}, {"false", "0", "no"}
_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(frozen=True)
class Query:
    """Parameters of one page; the names are those of `CollectedTraces.page`."""

    tool: str | None = None
    success: bool | None = None
    since: datetime | None = None
    limit: int = DEFAULT_LIMIT
    cursor: tuple[datetime, int] | None = None


def read_query(parameters: Mapping[str, str]) -> Query:
    """Read the parameters of `GET /api/traces`; raise `RequestRefused` for an invalid or unknown one."""
    known = {field.name for field in dataclasses.fields(Query)}
    # Jupyter's own clients may give their token, and ask not to count as activity, in any address.
    for name in set(parameters) - known - {"token", "no_track_activity"}:
        raise _wrong(f"There is no filter {name[:100]!r}.", f"The filters are {', '.join(sorted(known))}.")
    return Query(
        tool=parameters.get("tool"),
        success=_success(parameters["success"]) if "success" in parameters else None,
        since=_since(parameters["since"]) if "since" in parameters else None,
        limit=_limit(parameters["limit"]) if "limit" in parameters else DEFAULT_LIMIT,
        cursor=_position(parameters["cursor"]) if "cursor" in parameters else None,
    )


def page_json(page: TracePage) -> bytes:
    """Write `{"traces": […], "next": …}`; `next` is the cursor of the next page, null at the end."""
    after = None if page.next_cursor is None else _cursor(*page.next_cursor)
    return b'{"traces":[%b],"next":%b}' % (b",".join(map(_row_json, page.rows)), _encode(after))


def trace_json(row: CollectedTrace, *, parent_stored: bool, children: list[str]) -> bytes:
    """Write one trace, with its parent and children as far as they are stored."""
    return _row_json(row, {"parentStored": parent_stored, "children": children})


def _row_json(row: CollectedTrace, more: dict[str, Any] | None = None) -> bytes:
    """Write a trace in its wire form, with the columns that this side added at its end."""
    added = _encode({"toolId": row.tool_id, "receivedAt": row.received_at, **(more or {})})
    return row.wire.encode()[:-1] + b"," + added[1:]


def _cursor(moment: datetime, row_id: int) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()}~{row_id}".encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[datetime, int]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        moment, _, row_id = text.partition("~")
        position = (datetime.fromisoformat(moment).astimezone(UTC), int(row_id))
    except (ValueError, OverflowError, binascii.Error):
        raise _wrong("This cursor is none of ours.", "Take `next` of the page before, as it is.") from None
    if not 0 <= position[1] <= _MAX_ID:
        raise _wrong("This cursor is none of ours.", "Take `next` of the page before, as it is.")
    return position


def _success(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise _wrong(
            f"success={text[:100]!r} is neither true nor false.", "Write success=true or success=false."
        )
    return text.lower() in _YES


def _since(text: str) -> datetime:
    try:
        return parse_since(text[:100])
    except UsageInvalid as error:
        raise _wrong(error.message, error.hint) from None


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise _wrong(
            f"limit={text[:100]!r} is no number of traces.", f"Write a number from 1 to {MAX_LIMIT}."
        )
    return min(int(text), MAX_LIMIT)


def _wrong(message: str, hint: str) -> RequestRefused:
    return RequestRefused("QUERY_INVALID", message, hint=hint)

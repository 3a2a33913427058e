"""Verdicts on sent traces, from a collector's answer.

Two kinds of failure are kept apart. *Trouble* is a collector that is not there, or not itself: no connection, no answer
in time, half of one, 429, 5xx, a page of HTML. It says nothing about the traces, so they wait as long as it lasts. A
*refusal* comes from a collector that works and does not want this one trace: it is asked again a few times, then the
trace is parked with the reason.

500 lies in between: the application may fail on one trace, or on everything. It counts as a refusal only of a trace
that was sent alone, and only if the collector took another trace since the last try. 400, 413 and 422 concern a whole
request, so the next ones are made smaller until it is known which trace was meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from healkit.contracts import backoff
from healkit.contracts.traces import DeliveryVerdict, Waiting

#: Limit of an answer; a longer one is not from a collector.
ANSWER_MAX_BYTES = 1_000_000
#: Longest pause that a collector can ask for.
RETRY_AFTER_MAX_S = 3600.0
_REASON_MAX_CHARS = 500
#: No answer, or none in time: the request may have been too large for the line, or for the application.
_PERHAPS_TOO_MUCH = frozenset({0, 408, 500, 504})


class ItemError(msgspec.Struct, frozen=True):
    """Error for one trace that was not stored; `index` is its place in the request."""

    index: int | None = None
    id: str | None = None
    code: str = ""
    message: str = ""
    retryable: bool = True


class CollectorAnswer(msgspec.Struct, frozen=True):
    """A collector's answer to a request that it understood."""

    received: int
    stored: int
    errors: list[ItemError] = []


class CollectorResponse(msgspec.Struct, frozen=True):
    """Response as received; status 0 and a text in `problem` where there is no usable one."""

    status: int
    body: bytes = b""
    retry_after: str = ""
    problem: str = ""


class Judgement(msgspec.Struct, frozen=True):
    """Verdict on each trace, and how to go on.

    `trouble` says what is wrong with the collector, `wait_s` how long it asked to be left alone. `smaller`: send less
    at once. `stop`: send nothing more, since waiting does not help.
    """

    verdicts: list[DeliveryVerdict]
    trouble: str = ""
    wait_s: float = 0.0
    smaller: bool = False
    stop: bool = False


class RetryPolicy(msgspec.Struct, frozen=True):
    """Number of retries of a refused trace, and the pauses between attempts, in seconds."""

    retries: int
    backoff_s: float
    backoff_max_s: float

    def pause_s(self, failures: int) -> float:
        """Draw the pause before the next attempt after so many failures: exponential, with almost full jitter."""
        return backoff.pause_s(failures, self.backoff_s, self.backoff_max_s, least=0.05)

    def refused(self, trace: Waiting, reason: str, *, for_good: bool = False) -> DeliveryVerdict:
        """Return the verdict on a trace that was refused once more: again later, or parked."""
        reason = readable(reason)
        if for_good or trace.attempts + 1 > self.retries:
            return DeliveryVerdict(trace.trace_id, "parked", reason, counted=True)
        return DeliveryVerdict(
            trace.trace_id, "pending", reason, self.pause_s(trace.attempts + 1), counted=True
        )


def judge(
    batch: Sequence[Waiting], response: CollectorResponse, policy: RetryPolicy, last_success: datetime | None
) -> Judgement:
    """Judge a batch by the response; `last_success` is when the collector last took a trace."""
    if 200 <= response.status < 300:
        try:
            answer = msgspec.json.decode(response.body, type=CollectorAnswer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            answer = None
        if answer is None or answer.received != len(batch) or not 0 <= answer.stored <= len(batch):
            return _trouble(batch, f"{_said(response)} without an answer that can be understood")
        return _judge_items(batch, answer, policy)
    match response.status:
        case 401 | 403:
            reason = f"{_said(response)}: set sync_token (HEALKIT_SYNC_TOKEN) to a token that it accepts"
            return msgspec.structs.replace(_trouble(batch, reason), stop=True)
        case 413 if len(batch) == 1:
            reason = f"{_said(response)} to this trace alone, which has {len(batch[0].wire):,} characters"
            return Judgement([policy.refused(batch[0], reason, for_good=True)])
        case 400 | 422 if len(batch) == 1:
            return Judgement([policy.refused(batch[0], f"{_said(response)} to this trace alone")])
        case 400 | 413 | 422:
            return Judgement([DeliveryVerdict(trace.trace_id, "pending") for trace in batch], smaller=True)
        case 500 if len(batch) == 1 and _worked_since(batch[0], last_success):
            return Judgement([policy.refused(batch[0], f"{_said(response)} to this trace, and took others")])
    judged = _trouble(batch, response.problem or _said(response))
    wait_s = retry_after_s(response.retry_after)
    return msgspec.structs.replace(judged, wait_s=wait_s, smaller=response.status in _PERHAPS_TOO_MUCH)


def retry_after_s(header: str, now: datetime | None = None) -> float:
    """Parse `Retry-After` as seconds from now: seconds or an HTTP date (RFC 9110, 10.2.3); 0 for neither."""
    try:
        seconds = float(min(int(header), 10**9))
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, TypeError, IndexError):
            return 0.0
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return min(max(0.0, seconds), RETRY_AFTER_MAX_S)


def readable(text: str) -> str:
    """Reduce a text from a server to one line that can be shown and stored."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _REASON_MAX_CHARS]).split())
    return line[:_REASON_MAX_CHARS]


def _judge_items(batch: Sequence[Waiting], answer: CollectorAnswer, policy: RetryPolicy) -> Judgement:
    refused = _refused_places(batch, answer.errors)
    verdicts = [
        policy.refused(batch[place], f"{error.code}: {error.message}", for_good=not error.retryable)
        for place, error in refused.items()
    ]
    others = [trace for place, trace in enumerate(batch) if place not in refused]
    if answer.stored >= len(others):
        return Judgement([*verdicts, *(DeliveryVerdict(trace.trace_id, "sent") for trace in others)])
    if len(batch) == 1:
        reason = "the collector received it, did not store it, and did not say why"
        return Judgement([policy.refused(batch[0], reason)])
    # Some are stored, but which is unknown: each is sent again alone, and none is stored twice.
    return Judgement(
        [*verdicts, *(DeliveryVerdict(trace.trace_id, "pending") for trace in others)], smaller=True
    )


def _refused_places(batch: Sequence[Waiting], errors: Sequence[ItemError]) -> dict[int, ItemError]:
    """Map places in the batch to their errors; an error that names no trace of it is left out."""
    by_id = {trace.trace_id: place for place, trace in enumerate(batch)}
    found: dict[int, ItemError] = {}
    for error in errors:
        place = by_id.get(error.id or "")
        if place is None and error.index is not None and 0 <= error.index < len(batch):
            place = error.index
        if place is not None:
            found[place] = error
    return found


def _trouble(batch: Sequence[Waiting], problem: str) -> Judgement:
    problem = readable(problem)
    return Judgement(
        [DeliveryVerdict(trace.trace_id, "pending", problem) for trace in batch], trouble=problem
    )


def _worked_since(trace: Waiting, last_success: datetime | None) -> bool:
    return last_success is not None and trace.attempted_at is not None and last_success > trace.attempted_at


def _said(response: CollectorResponse) -> str:
    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    return f"the collector answered {response.status}{phrase}"

"""Ingestion of trace batches: read, cleaned, stored once.

A client's word is a claim, and that its traces were cleaned is one too, so all text in them that a person or a tool
wrote goes through this side's sanitiser before it is stored; ids, names, times and numbers are checked by the wire form
and left alone. No HTTP here.

JSON as Python writes it by default is not always JSON: `NaN` is no number, and half a surrogate pair is no text. A body
with such values is read by Python's own reader and put into the form that healkit itself would have sent ("NaN" as
text, the surrogate as an escape), so that one odd value does not cost the whole batch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import uuid
from collections import Counter

import msgspec

from healkit.contracts.encoding import to_jsonable
from healkit.contracts.traces import NO_ID, ExecutionTrace, TraceFault, read_batch
from healkit.errors import BatchTooLarge, RequestRefused, TraceInvalid
from healkit.sanitizer.cleaner import Cleaner
from healkit.sanitizer.payloads import cleaned_trace
from healkit.sanitizer.work_limit import shared_limit
from healkit.store.collected import Arrival, CollectedTraces, Stored, capability_of

#: Traces that one request may hold.
MAX_TRACES = 100

_FAULTS: dict[Stored, tuple[str, str]] = {
    "conflict": (
        "TRACE_CONFLICT",
        "A trace of this id, with as many calls and decisions but other content, is stored already; it was kept.",
    ),
    "refused": ("TRACE_REFUSED", "The database can never store this trace: a value in it is out of range."),
}


class Receipt(msgspec.Struct, frozen=True):
    """Answer to a batch: how many traces came, how many are stored now, and why the others are not.

    `ids` is there where a trace came without an id: the id of each that is stored, in order, and null for each other.
    """

    received: int
    stored: int
    errors: list[TraceFault]
    ids: list[str | None] | msgspec.UnsetType = msgspec.UNSET


@dataclasses.dataclass(frozen=True)
class Ingested:
    """Receipt of a batch, and its counters: the outcome of each trace, the hidden texts by rule."""

    receipt: Receipt
    outcomes: list[str]
    hidden: dict[str, int]


#: A trace's metadata is cleaned as a whole, and then each value of it by itself.
_CLEANED_TIMES = 2


class Ingest:
    """Ingestion into one store; safe to use from several threads.

    payload_max_bytes: the largest payload that is kept whole, in bytes of JSON.
    """

    def __init__(self, store: CollectedTraces, cleaner: Cleaner, payload_max_bytes: int) -> None:
        self._store = store
        self._cleaner = cleaner
        self._payload_max_bytes = payload_max_bytes

    def store(self, body: bytes, sender: str = "") -> Ingested:
        """Store the valid traces of a body in one transaction; sender: whose traces without an id are told apart.

        Raises `RequestRefused` for a body that is no batch, and `DatabaseError` with nothing stored.
        """
        items = _read(body)
        hidden: Counter[str] = Counter()
        arrivals: dict[int, Arrival] = {}
        faults: list[TraceFault] = []
        unnamed: Counter[str] = Counter()
        with shared_limit(_CLEANED_TIMES * len(body)):
            for index, item in enumerate(items):
                if isinstance(item, ExecutionTrace):
                    arrivals[index] = self._arrival(item, hidden, sender, unnamed)
                else:
                    faults.append(item)
        results = (
            dict(zip(arrivals, self._store.store(list(arrivals.values())), strict=True)) if arrivals else {}
        )
        faults += [
            TraceFault(index, arrivals[index].trace_id, *_FAULTS[result])
            for index, result in results.items()
            if result in _FAULTS
        ]
        outcomes = [results.get(index, "invalid") for index in range(len(items))]
        receipt = Receipt(len(items), len(items) - len(faults), sorted(faults, key=lambda fault: fault.index))
        if unnamed:
            faulty = {fault.index for fault in faults}
            ids = [None if index in faulty else arrivals[index].trace_id for index in range(len(items))]
            receipt = msgspec.structs.replace(receipt, ids=ids)
        return Ingested(receipt, outcomes, dict(hidden))

    def _arrival(
        self, trace: ExecutionTrace, hidden: Counter[str], sender: str, unnamed: Counter[str]
    ) -> Arrival:
        """Return the trace, cleaned, as the store takes it; unnamed: counts equal ones without an id."""
        capability = capability_of(trace.capability_id)
        if not capability.code_hash:  # any text
            name = self._cleaner.clean(trace.capability_id, limit_bytes=self._payload_max_bytes)
            hidden.update(name.hidden)
            trace = msgspec.structs.replace(trace, capability_id=str(name.value))
            capability = capability_of(trace.capability_id)
        cleaned, found = cleaned_trace(trace, self._cleaner, self._payload_max_bytes)
        hidden.update(found)
        if trace.id == NO_ID:
            cleaned = msgspec.structs.replace(cleaned, id=_id_of(cleaned, sender, unnamed))
        return Arrival(
            trace_id=cleaned.id,
            parent_trace_id=trace.parent_id,
            capability=capability,
            success=trace.success,
            timestamp=trace.timestamp,
            duration_ms=trace.duration_ms,
            detail=_detail_of(trace),
            digest=hashlib.sha256(_json(cleaned, canonical=True)).hexdigest(),
            wire=_json(cleaned).decode(),
        )


def _id_of(trace: ExecutionTrace, sender: str, unnamed: Counter[str]) -> str:
    """Make the id of a trace that came without one, from its content: the same when its batch is sent again.

    The content is that which is stored: a hash of what was hidden could be guessed back. Of equal traces in one batch
    each has an id, by its number. UUIDs of version 8 are for such ids (RFC 9562).
    """
    content = hashlib.sha256(sender.encode() + b"\0" + _json(trace, canonical=True)).digest()
    number = unnamed[content.hex()]
    unnamed[content.hex()] += 1
    made = hashlib.sha256(content + number.to_bytes(8)).digest()[:16]
    value = int.from_bytes(made) & ~(0xF << 76) & ~(0x3 << 62) | (8 << 76) | (2 << 62)
    return str(uuid.UUID(int=value))


def _detail_of(trace: ExecutionTrace) -> int:
    """Measure the detail of a report: its calls and decisions, and whether its host saw the end.

    The execution of a dead host is reported as HOST_DIED; when its true outcome turns up in a spool file, that is the
    better report and no contradiction.
    """
    count = 2 * (len(trace.task_results) + len(trace.decisions))
    return count + (trace.metadata.get("errorCode") != "HOST_DIED")


def _read(body: bytes) -> list[ExecutionTrace | TraceFault]:
    """Read the traces of the body; raise `RequestRefused`."""
    try:
        return read_batch(body, MAX_TRACES)
    except BatchTooLarge as error:
        raise RequestRefused(error.code, error.message, hint=error.hint) from None
    except TraceInvalid as error:
        first = error
    try:
        return read_batch(_rewritten(body), MAX_TRACES)
    except TraceInvalid as error:
        said = error if isinstance(error, BatchTooLarge) else first
        code = error.code if said is error else "BODY_INVALID"
        raise RequestRefused(code, said.message, hint=said.hint) from None


def _rewritten(body: bytes) -> bytes:
    """Rewrite `NaN` and lone surrogates as healkit writes them; raise `RequestRefused` with the place of an error."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as error:
        message = f"The body is not UTF-8 at byte {error.start}."
    except json.JSONDecodeError as error:
        message = f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno} (byte {error.pos})."
    except RecursionError:
        message = "The body is nested too deep."
    except ValueError as error:  # an integer of more digits than Python reads (CVE-2020-10735)
        message = f"The body is not read: {error}."
    else:
        return json.dumps(to_jsonable(value)[0], allow_nan=False).encode()
    raise RequestRefused("BODY_INVALID", message)


def _json(trace: ExecutionTrace, *, canonical: bool = False) -> bytes:
    """Write the wire form; canonical: with its keys sorted, so that equal content has equal bytes."""
    try:
        return msgspec.json.encode(trace, order="sorted" if canonical else None)
    except OverflowError:  # msgspec reads integers of any length, and writes up to 64 bits
        value = msgspec.to_builtins(trace, enc_hook=None)
        return json.dumps(value, sort_keys=canonical, separators=(",", ":"), ensure_ascii=False).encode()

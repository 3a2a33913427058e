"""Chain of the audit: an entry's hash, a walk along all.

An entry's hash is the SHA-256 of a JSON array: the hash of the entry before it, then the entry's own columns as they
are stored (`HASHED`), without spaces and without escapes for letters that UTF-8 has. The first entry follows the
chain's id, which is random and was made with the table. docs/audit.md has the rule as a few lines of Python.

There is one chain for the whole table, and not one for each execution. A chain for each could not tell that an
execution was removed as a whole, and the manifest of a run would hold its own entries only; along one chain, each
manifest holds every entry before it too. The price is that appends queue, which all writes of healkit's do anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from healkit.contracts.audit import AnchoredHead, AuditFault, AuditHead, AuditVerification, FaultKind

#: Columns that are hashed, in this order, behind the hash of the entry before.
HASHED = (
    "execution_id", "execution_type", "seq", "timestamp", "choice_type", "tool_name", "tool_params", "metadata",
    "description", "run_id", "event_seq",
)  # fmt: skip
#: In the place of a run's id: a head that a person kept, and not a run's manifest.
KEPT_ELSEWHERE = ""
COLUMNS = ("id", *HASHED, "previous_hash", "hash")

_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256


def entry_hash(previous_hash: str, hashed: Iterable[Any]) -> str:
    """Return the hash of the entry with those values of `HASHED`; a time is a text as SQLite stores it."""
    return _sha256(_encode([previous_hash, *hashed])).hexdigest()


class ChainWalk:
    """Walk along a chain from its id; `step` takes rows of `COLUMNS` in the order of their ids.

    anchored: the heads that runs' manifests name.
    """

    def __init__(self, chain: str | None, anchored: Iterable[AnchoredHead]) -> None:
        self.position = 0
        self._chain = chain
        self._previous: Any = chain
        self._seqs: dict[Any, int] = {}
        self._anchors: dict[int, list[AnchoredHead]] = {}
        self._foreign: set[str] = set()
        self._is_other = False
        self._many_anchors = 0
        for anchor in anchored:
            kept_elsewhere = anchor.run_id == KEPT_ELSEWHERE
            if anchor.head.chain == chain:
                self._anchors.setdefault(anchor.head.entries, []).append(anchor)
                self._many_anchors += not kept_elsewhere
            elif kept_elsewhere:
                self._is_other = True
            else:
                self._foreign.add(anchor.run_id)

    def step(self, rows: Iterable[tuple[Any, ...]]) -> AuditFault | None:
        """Go on along these rows; return the first that is wrong."""
        position, previous, seqs, anchors = self.position, self._previous, self._seqs, self._anchors
        special = anchors.keys() | self._foreign
        for row in rows:
            position += 1
            execution_id = row[1]
            seqs[execution_id] = seq = seqs.get(execution_id, 0) + 1
            in_place = row[0] == position and row[3] == seq and row[12] == previous and _fits(row)
            if not in_place or position in special or execution_id in special:
                fault = self._fault(row, position, previous, seq)
                if fault is not None:
                    return fault
            previous = row[13]
        self.position, self._previous = position, previous
        return None

    def end(self) -> AuditFault | None:
        """Return what is wrong after the last row."""
        if self._chain is None:
            return AuditFault("rewritten", 1, "The id of the chain is missing, or there is more than one.")
        if self._is_other:
            return AuditFault(
                "rewritten", 1, "The chain has another id than the head that was kept elsewhere."
            )
        beyond = [(entries, anchors) for entries, anchors in self._anchors.items() if entries > self.position]
        if not beyond:
            return None
        entries, anchors = max(beyond, key=lambda found: found[0])
        said = f"{_named_head(anchors[0])} says {entries:,}"
        said = f"The audit has {self.position:,} entries, and {said}: the last ones were removed."
        return AuditFault("cut_off", self.position + 1, said)

    def result(self, fault: AuditFault | None) -> AuditVerification:
        """Return the result of the walk so far."""
        whole = self._chain is not None and fault is None
        head = AuditHead(str(self._chain), self.position, self._previous) if whole else None
        return AuditVerification(self.position, head, self._many_anchors, len(self._foreign), fault)

    def _fault(self, row: tuple[Any, ...], position: int, previous: Any, seq: int) -> AuditFault | None:
        """Say what is wrong with a row, the cause before what follows from it; None for nothing."""
        kind: FaultKind
        if row[0] < position:
            kind, said = "reordered", "the chain begins with entry 1"
        elif row[0] > position:
            many = (
                f"entry {position:,} is"
                if row[0] == position + 1
                else f"entries {position:,} to {row[0] - 1:,} are"
            )
            kind, said = "missing", f"{many} missing before it"
        elif not _fits(row):
            kind, said = "changed", "it does not fit its hash: it was changed"
        elif row[12] != previous:
            kind, said = (
                "reordered",
                "it does not follow the entry before it: that one was changed, removed or moved",
            )
        elif row[3] != seq:
            kind, said = "missing", f"it has number {row[3]!r} of its execution, and {seq} is next"
        elif (
            wrong := next((a for a in self._anchors.get(position, ()) if a.head.hash != row[13]), None)
        ) is not None:
            kind, said = "rewritten", f"{_named_head(wrong)} has another hash for it"
        elif row[1] in self._foreign:
            kind, said = "rewritten", f"the manifest of run {row[1]!r} names another chain"
        else:
            return None
        return AuditFault(kind, position, f"{_named(row)}: {said}.", str(row[1]), _number(row[3]))


def _fits(row: tuple[Any, ...]) -> bool:
    """Return True if a row has the hash that it says, whatever was put into it."""
    try:
        return bool(_sha256(_encode([row[12], *row[1:12]])).hexdigest() == row[13])
    except (TypeError, ValueError, OverflowError):  # a value of a kind that is never stored
        return False


def _named_head(anchor: AnchoredHead) -> str:
    kept_elsewhere = anchor.run_id == KEPT_ELSEWHERE
    return "the head that was kept elsewhere" if kept_elsewhere else f"the manifest of run {anchor.run_id!r}"


def _named(row: tuple[Any, ...]) -> str:
    return f"Entry {row[0]!r} (number {row[3]!r} of {row[1]!r}, {row[5]!r})"


def _number(seq: Any) -> int | None:
    return seq if isinstance(seq, int) else None

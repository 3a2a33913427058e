"""What the outbox and whoever empties it say to each other."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec


class Waiting(msgspec.Struct, frozen=True):
    """One trace that is to be sent, as its sender gets it: `attempts` are the refusals so far."""

    trace_id: str
    wire: str
    attempts: int = 0
    attempted_at: datetime | None = None


class DeliveryVerdict(msgspec.Struct, frozen=True):
    """What became of one trace that was sent.

    `sent`: the collector has it. `parked`: it will not be sent again by itself. `pending`: again after `delay_s`;
    `counted` where the trace itself was refused, and not merely nobody there to take it.
    """

    trace_id: str
    state: Literal["sent", "pending", "parked"]
    reason: str = ""
    delay_s: float = 0.0
    counted: bool = False


class OutboxState(msgspec.Struct, frozen=True):
    """How many traces are in which state, why the parked ones are (reason → how many), and what went wrong last."""

    local: int = 0
    pending: int = 0
    sent: int = 0
    parked: int = 0
    parked_for: dict[str, int] = {}
    problem: str = ""

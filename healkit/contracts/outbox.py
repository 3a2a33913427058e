"""Messages between the outbox and its sender."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec


class Waiting(msgspec.Struct, frozen=True):
    """Trace that is to be sent, as its sender gets it; `attempts` are the refusals so far."""

    trace_id: str
    wire: str
    attempts: int = 0
    attempted_at: datetime | None = None


class DeliveryVerdict(msgspec.Struct, frozen=True):
    """Verdict on one trace that was sent.

    `sent`: the collector has it. `parked`: it will not be sent again by itself. `pending`: again after `delay_s`;
    `counted` where the trace itself was refused, and the collector was not merely away.
    """

    trace_id: str
    state: Literal["sent", "pending", "parked"]
    reason: str = ""
    delay_s: float = 0.0
    counted: bool = False


class OutboxState(msgspec.Struct, frozen=True):
    """Number of traces in each state, why traces are parked (reason → how many), and the last error."""

    local: int = 0
    pending: int = 0
    sent: int = 0
    parked: int = 0
    parked_for: dict[str, int] = {}
    problem: str = ""

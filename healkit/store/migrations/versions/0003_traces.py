"""Traces, and the outbox they wait in."""

from __future__ import annotations

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Nothing yet."""

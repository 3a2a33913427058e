"""Column for calls answered from the record."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"


def upgrade() -> None:
    """Add the column; empty for a call that was made."""
    op.add_column("executioncall", sa.Column("answered_from", sa.String(36)))

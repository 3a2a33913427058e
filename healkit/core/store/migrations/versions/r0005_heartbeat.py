"""Table of the hosts that have executions in progress."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from healkit.core.store.models import UtcDateTime

revision = "r0005"
down_revision = "r0004"


def upgrade() -> None:
    """Make the table; hosts only write to it on a server."""
    op.create_table(
        "hostheartbeat",
        sa.Column("host", sa.String(), primary_key=True),
        sa.Column("alive_until", UtcDateTime(), nullable=False),
        sqlite_with_rowid=False,
    )

"""Column for the MCP client that requested an execution."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"


def upgrade() -> None:
    """Add the column; empty for an execution that no MCP client requested."""
    op.add_column("executionlog", sa.Column("client", sa.String()))

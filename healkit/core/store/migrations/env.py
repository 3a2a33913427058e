"""Entry point of Alembic, on a connection of `migrate`.

The connection is already in a write transaction, so that a failed migration leaves nothing behind. SQLite supports that
for DDL too, although Alembic assumes otherwise by default.
"""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()

"""Numbered schema changes, run by alembic."""

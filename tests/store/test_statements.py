"""The statements of the execution path are what SQLAlchemy makes of the tables."""

from __future__ import annotations

import os

import msgspec
import pytest
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg

from healkit.store.rows import compiled
from healkit.store.statements import FILE, statements_for


@pytest.mark.requirement("LOG-14")
def test_the_stored_statements_are_those_of_the_tables() -> None:
    """`HEALKIT_REGENERATE=1` writes them anew; the diff is then reviewed."""
    made = {"sqlite": compiled(sqlite.dialect()), "postgresql": compiled(psycopg.dialect())}
    if os.environ.get("HEALKIT_REGENERATE"):
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    assert {name: statements_for(name) for name in made} == made, "run with HEALKIT_REGENERATE=1"

"""Databases that are copied, and trusted at their new place."""

from __future__ import annotations

import shutil
from pathlib import Path

from healkit.core.store.database import Database


def trusted_copy(database: Path | str, to: Path | str) -> str:
    """Copy a database and trust the copy; return its path."""
    copy = str(shutil.copy(database, to))
    opened = Database(copy, create=False, only_read=True)
    try:
        opened.trust()
    finally:
        opened.close()
    return copy

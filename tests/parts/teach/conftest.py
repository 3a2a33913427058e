"""Fixtures that the gallery's tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import healkit


@pytest.fixture(scope="session")
def hidden_examples() -> dict[str, list[dict[str, Any]]]:
    """Examples of what is right that no search may see, by the lesson's name."""
    path = Path(healkit.__file__).parent / "parts" / "teach" / "gallery" / "hidden_examples.json"
    return json.loads(path.read_text())

"""What the tests of the healing share: a vault with a tool that fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from healing_samples import BROKEN, EXAMPLES

from healkit import Config, Healkit


@pytest.fixture
def healing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Healkit]:
    """A vault with `ratio`, which has failed once and passed once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Healkit(tmp_path / "healkit.db", config=Config.from_environment(os.environ)) as healkit:
        healkit.vault.add("ratio", BROKEN, examples=EXAMPLES)
        assert healkit.execute("ratio", arguments={"a": 8, "b": 2}).value == 4.0
        assert healkit.execute("ratio", arguments={"a": 1, "b": 0}).failure is not None
        yield healkit

"""Temporary folders whose path is too long for sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from healkit import Healkit
from healkit.core.workers import sandbox
from healkit.core.workers.sandbox import folder_for_sockets, private_base
from healkit.core.workers.tiers import probe
from healkit.errors import ConfigError


@pytest.fixture
def long_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of more than 300 bytes the one for temporary files."""
    folder = tmp_path.joinpath(*("temporary files" * 7 for _ in range(3)))
    folder.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_tiers_are_probed_where_the_temporary_folder_has_a_long_path(long_folder: Path) -> None:
    """With such a path, the probe raised a bare `OSError: AF_UNIX path too long`."""
    assert probe.__wrapped__("landlock") == probe("landlock")
    assert list(long_folder.iterdir()) == []


@pytest.mark.slow
def test_a_tool_runs_where_the_temporary_folder_has_a_long_path(long_folder: Path, tmp_path: Path) -> None:
    with Healkit(tmp_path / "healkit.db") as hk:
        hk.vault.add("one", "def one(): return 1")
        assert hk.execute_tool("one") == 1
    assert list(long_folder.iterdir()) == []


def test_bytes_of_a_path_count_and_not_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", f"/{'ü' * 20}")
    assert folder_for_sockets() == Path("/tmp")


def test_a_long_path_without_a_shorter_one_is_a_clear_error(
    long_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_SHORT", tmp_path / "missing")
    for needs_it in (private_base, folder_for_sockets):
        with pytest.raises(ConfigError, match="too long a path for sockets") as caught:
            needs_it()
        assert caught.value.code == "CONFIG_INVALID"
        assert "TMPDIR" in caught.value.hint

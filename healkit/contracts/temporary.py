"""Folders for temporary files, or a clear error."""

from __future__ import annotations

import tempfile
from pathlib import Path

from healkit.errors import ConfigError


def temporary_folder() -> Path:
    """Return the folder for temporary files; raise `ConfigError` where no place can be written."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise _unusable(error) from None


def new_temporary_folder(prefix: str, parent: Path | None = None) -> Path:
    """Make a new folder, for this user only, in `parent` or the folder for temporary files; raise `ConfigError`."""
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise _unusable(error) from None


def _unusable(error: OSError) -> ConfigError:
    return ConfigError(
        f"There is no usable folder for temporary files: {error.strerror or error}.",
        hint="Set TMPDIR to a folder that you can write to and that has room.",
    )

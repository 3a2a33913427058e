"""Files of views where all hosts of a database reach them.

The place is any fsspec URL: a bucket, or a folder that several machines mount. The folder of this machine has copies. A
file is named by its content, and each reading checks the content, wherever the file came from.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from healkit.errors import ConfigError
from healkit.plain_text import shown_url


class SharedFiles:
    """Files at a URL. All methods raise `OSError` if the place cannot be reached."""

    def __init__(self, url: str) -> None:
        """Take the URL; credentials come from the environment. Raises `ConfigError` for an unusable URL."""
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                "Views in a shared place need fsspec, which is not installed.",
                hint="pip install 'healkit[views]'.",
            ) from None
        try:
            try:
                self._fs, root = fsspec.core.url_to_fs(url)
            except ImportError:  # Arrow speaks to S3 and Google Cloud Storage by itself
                from fsspec.implementations.arrow import ArrowFSWrapper
                from pyarrow.fs import FileSystem

                arrow, root = FileSystem.from_uri(url)
                self._fs = ArrowFSWrapper(arrow)
        except (ValueError, ImportError) as error:  # Arrow's errors are ValueErrors
            raise ConfigError(f"HEALKIT_VIEWS_URL={shown_url(url)!r} cannot be used: {error}.") from None
        self._root = str(root).rstrip("/")

    def put(self, file: Path) -> None:
        """Copy a file there, unless it is already there; it appears completely or not at all."""
        there = self._path(file.name)
        if self._told(self._fs.exists, there):
            return
        self._told(self._fs.makedirs, self._root, exist_ok=True)
        if "file" not in self._fs.protocol:  # a bucket shows an object once all of it is there
            self._told(self._fs.put_file, str(file), there)
            return
        part = self._path(f"{file.name}.{secrets.token_hex(8)}.part")
        try:
            self._told(self._fs.put_file, str(file), part)
            self._told(self._fs.mv, part, there)
        finally:
            if self._told(self._fs.exists, part):
                self._told(self._fs.rm_file, part)

    def bring(self, name: str, folder: Path) -> None:
        """Copy a file from there into a folder; raises `FileNotFoundError` if it does not exist."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = folder / f"{name}.{secrets.token_hex(8)}.part"
        try:
            self._told(self._fs.get_file, self._path(name), str(part))
            part.chmod(0o600)
            part.replace(folder / name)
        finally:
            part.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file there, if there is one."""
        with suppress(FileNotFoundError):
            self._told(self._fs.rm_file, self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _told(self, work: Any, *given: Any, **more: Any) -> Any:
        """Call a function of the file system; raise its errors as `OSError`, because each kind has its own."""
        try:
            return work(*given, **more)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error

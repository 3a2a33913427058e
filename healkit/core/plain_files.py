"""Files of a folder, without links, and temporary folders."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from healkit.errors import ConfigError


def open_regular(folder: Path, name: str) -> BinaryIO:
    """Open a file of a folder for reading; raise `OSError`.

    name: Relative path of the file. Neither the file nor a folder on the way may be a link, and the path cannot leave
    the folder. A rename does not affect the open file.
    """
    inner, last = _folder_of(folder, name)
    try:
        # Without O_NONBLOCK, opening a pipe of that name would block.
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inner)
    except OSError as error:
        raise _said(error, name) from None
    finally:
        os.close(inner)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", name)
    return os.fdopen(descriptor, "rb")


def read_file(folder: Path, name: str) -> bytes:
    """Return the content of a regular file in the folder; raise `OSError` like `open_regular`."""
    with open_regular(folder, name) as file:
        return file.read()


def remove_file(folder: Path, name: str) -> None:
    """Remove a file of a folder, or a link in its place, if it exists; raise `OSError`."""
    try:
        inner, last = _folder_of(folder, name)
    except FileNotFoundError:
        return
    try:
        os.unlink(last, dir_fd=inner)
    except FileNotFoundError:
        pass
    finally:
        os.close(inner)


def _folder_of(folder: Path, name: str) -> tuple[int, str]:
    """Return a descriptor of the folder that contains the file, and the file's name."""
    *between, last = name.split("/")
    if "\0" in name or any(part in {"", ".", ".."} for part in (*between, last)):
        raise OSError(errno.EINVAL, "this is not a name in the folder", name)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in between:
        try:
            inner = os.open(
                part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor
            )
        except OSError as error:
            raise _said(error, name) from None
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor, last


def _said(error: OSError, name: str) -> OSError:
    """Return the error with a clear message for a link, which the system reports as a loop or as not a folder."""
    if error.errno == errno.ELOOP:
        return OSError(errno.ELOOP, "it is a link, and links are not followed", name)
    return error


# Folders for temporary files.


def temporary_folder() -> Path:
    """Return the folder for temporary files; raise `ConfigError` if no folder is writable."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise _unusable(error) from None


def new_temporary_folder(prefix: str, parent: Path | None = None) -> Path:
    """Create a private folder in `parent`, or in the folder for temporary files; raise `ConfigError`."""
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise _unusable(error) from None


def _unusable(error: OSError) -> ConfigError:
    return ConfigError(
        f"There is no usable folder for temporary files: {error.strerror or error}.",
        hint="Set TMPDIR to a folder that you can write to and that has room.",
    )

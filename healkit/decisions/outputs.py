"""Outputs of tools, written by the host into a folder.

A tool in a worker returns text or bytes and never writes a file. The host writes them: under a name that stays in the
folder, for the user alone, and never over a file that is there. A half-written file has another name, which begins with
a dot.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from healkit.errors import UsageInvalid

#: Longest name of a file, in bytes; most file systems take 255.
_NAME_MAX_BYTES = 200
_NAME = re.compile(r"[^\W_][\w .()+,=@-]*")
#: Names that Windows keeps for devices, with any ending: a run's folder may be carried there.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


def write_output(value: str | bytes, folder: str | Path, name: str) -> Path:
    """Write what a tool returned into `folder` as `name`, mode 600; return the file's path.

    Text is written as UTF-8. Raises `UsageInvalid` for a value of another kind, a name that is more than a plain file
    name or that is taken, and `OSError` where the folder cannot be written.
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes | bytearray):
        data = bytes(value)
    else:
        raise UsageInvalid(
            f"A file is written from text or bytes, not from a value of type {type(value).__name__}."
        )
    _check_name(name)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _write(descriptor, name, data)
    finally:
        os.close(descriptor)
    return Path(folder) / name


def _check_name(name: str) -> None:
    """Raise `UsageInvalid` unless it is a plain name of a file."""
    plain = isinstance(name, str) and _NAME.fullmatch(name) and len(name.encode()) <= _NAME_MAX_BYTES
    if not plain or name.endswith((".", " ")) or _DEVICES.match(name):
        raise UsageInvalid(
            f"{str(name)[:80]!r} is not a name for a file.",
            hint="Use letters, digits, spaces and . _ - ( ) + , = @ and begin with a letter or a digit.",
        )


def _write(folder: int, name: str, data: bytes) -> None:
    """Write a file in the open folder, whole or not at all."""
    partial = f".{secrets.token_hex(8)}.partial"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600, dir_fd=folder), "wb") as file:
        try:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # A link, unlike a renaming, never replaces a file that is there.
            os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise UsageInvalid(
                f"The folder has a file {name!r} already.",
                hint="Choose another name; nothing is overwritten.",
            ) from None
        finally:
            os.unlink(partial, dir_fd=folder)

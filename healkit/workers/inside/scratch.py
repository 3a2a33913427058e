"""Emptying a scratch folder."""

from __future__ import annotations

import contextlib
import os


def empty_folder(folder: str) -> None:
    """Remove everything in it, as far as that can be done; links are removed and not followed."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil  # late: it imports three compression modules, and folders are rare

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)

"""Imports of healkit, never from the working folder.

A notebook's kernel has the notebook's folder on `sys.path`, before the installed packages; `python -m` puts the folder
first, too. Most dependencies of healkit are imported late. So a press on **Fix** would run a file `pandas.py` that lies
beside a notebook. Removing the folder from the path, or moving it to the end, would change the imports of the user's
own cells, in all threads.

So a finder looks at the importing code. An import by a library comes from the installed packages, if healkit is on the
stack and the packages have the module. All other imports work as usual.
https://docs.python.org/3/library/sys.html#sys.meta_path
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

from healkit.package import FOLDER

_PACKAGE = os.path.join(FOLDER, "")
_HOME = os.path.dirname(os.path.dirname(_PACKAGE))
#: Files of frames between an import and the code that imports.
_MACHINERY = ("<frozen ", importlib.__file__)
#: File that imports the modules of entry points. The path is built here, because importing the module itself
#: takes as long as all of `import healkit`.
_ENTRY_POINTS = os.path.join(os.path.dirname(importlib.__file__), "metadata", "__init__.py")


def installed_path() -> list[str]:
    """Return `sys.path` without the working folder; a checkout of healkit is kept, even if it is the working folder."""
    try:
        here = os.getcwd()
    except OSError:  # the folder was deleted
        here = ""
    return [path for path in sys.path if os.path.isabs(path) and (path != here or path == _HOME)]


class OwnImports:
    """Finder in `sys.meta_path`, before the finder that searches `sys.path`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the installed module if healkit needs it; called by each import of a module that is not loaded.

        Raises `ModuleNotFoundError` for an entry point's module that exists only in the working folder: any file there
        could claim to be a plug-in.
        """
        if path is not None:  # a submodule is found in its package
            return None
        if (installed := installed_path()) == sys.path:
            return None
        importer, is_ours = _importer(sys._getframe(1))
        if not is_ours or not importer.startswith(
            (_PACKAGE, *(os.path.join(folder, "") for folder in installed))
        ):
            return None  # the user's own function, called by healkit
        spec = PathFinder.find_spec(name, installed, target)
        if spec is None and importer == _ENTRY_POINTS and PathFinder.find_spec(name):
            raise ModuleNotFoundError(
                f"{name!r} is not installed, and is not taken from {os.getcwd()!r}.", name=name
            )
        return spec


def _importer(frame: FrameType | None) -> tuple[str, bool]:
    """Return the file of the importing code, and whether healkit is among its callers."""
    importer = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if not importer and not file.startswith(_MACHINERY):
            importer = file
        if file.startswith(_PACKAGE) and file != __file__:
            return importer, True
        frame = frame.f_back
    return importer, False


def add_finder() -> None:
    """Add the finder, once; called when healkit is imported. A worker does not need it: no folder is on its path."""
    if OwnImports not in sys.meta_path and not sys.flags.safe_path:
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0
        sys.meta_path.insert(at, OwnImports)

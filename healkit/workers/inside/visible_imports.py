"""Imports that find what may be read, and nothing else.

Landlock is the boundary: hidden files cannot be read. But a hidden package's files still have names, and importing one
would raise a PermissionError, where code that can do without a package expects a ModuleNotFoundError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType


class VisibleFinder(FileFinder):
    """Finder of one folder, for some of the modules in it."""

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        super().__init__(
            folder,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (SourceFileLoader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )
        self._names = frozenset(names)

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for a hidden module; called by the import system."""
        return super().find_spec(fullname, target) if fullname.rpartition(".")[2] in self._names else None


def show_only(read: Sequence[str], listed: Sequence[str]) -> None:
    """Find in the listed folders, and beneath them, only what lies on a path that may be read."""
    sys.path_hooks.insert(0, _hook(tuple(read), tuple(listed)))
    sys.path_importer_cache.clear()


def _hook(read: tuple[str, ...], listed: tuple[str, ...]) -> Callable[[str], VisibleFinder]:
    def finder(entry: str) -> VisibleFinder:
        folder = entry if _is_within(entry, listed) else os.path.realpath(entry)
        if _is_within(folder, read) or not _is_within(folder, listed):
            raise ImportError  # leave it to the ordinary finder
        paths = (path[len(folder) + 1 :] for path in read if path.startswith(f"{folder}/"))
        return VisibleFinder(folder, {path.partition("/")[0].partition(".")[0] for path in paths})

    return finder


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

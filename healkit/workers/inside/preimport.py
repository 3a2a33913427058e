"""Imports done in a trial server, ahead of its children.

A trial server starts with few modules, because every fork copies what it holds, and `threading` or `logging` would
reset their locks in each child. Modules of the standard library that a code names are imported in the trial server,
once. All others are imported in the child, except for what the server was started with (`workers.preloads`): no other
code than that and Python's own runs in a trial server.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import re
import sys

#: Modules of the standard library that act when imported, or need a screen.
_LOUD = {"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "readline", "curses"}
#: Parts of a package that are programs or tests.
_PROGRAMS = {"__main__", "test", "tests"}
#: Import statement; a false match inside a string does no harm.
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)", re.MULTILINE
)
_ASYNC = re.compile(r"\basync[ \t]")
#: Names tried so far; each is tried once.
_tried: set[str] = set()


def preimport(code: str) -> None:
    """Import here what the code names of the standard library, so that not every child has to."""
    if "import" not in code and "async" not in code:
        return
    missing = [name for name in _named(code) - _tried if name not in sys.modules and _harmless(name)]
    _tried.update(missing)
    for name in missing:
        # The child meets the same error, and reports it.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    if missing:
        gc.collect()
        gc.freeze()


def _named(code: str) -> set[str]:
    """Return the modules that the code imports, as far as can be told without parsing it."""
    names = {"asyncio"} if _ASYNC.search(code) else set()
    for listed, source in _IMPORT.findall(code):
        names |= {part.split()[0] for part in f"{listed},{source}".split(",") if part.strip()}
    return names


def _harmless(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in sys.stdlib_module_names and not _PROGRAMS & {*parts} and parts[0] not in _LOUD

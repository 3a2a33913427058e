"""Rows of all commands: the core's, the face's, the parts'.

A module is imported when its row is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from healkit.commands.table import Command, Group
from healkit.errors import UsageInvalid

#: Commands and groups that do not belong to a part → their module below `faces`.
_HOMES = {
    "run": "cli.run",
    "demo": "cli.run",
    "lab": "cli.lab",
    "page": "cli.lab",
    "docs": "cli.docs",
    "setup": "cli.setup",
    "errors": "commands.log",
    "doctor": "commands.reports",
    "mcp": "cli.mcp",
    "status": "commands.reports",
    "trust": "commands.trust",
    "db": "commands.db",
    "log": "commands.log",
    "vault": "commands.vault",
}
#: Order of `healkit --help`; all others follow.
_ORDER = (
    *("run", "map", "demo", "lab", "page", "docs", "setup", "seed", "heal", "check", "decide", "errors", "doctor"),
    *("collect", "mcp"),
    *("status", "trust", "summarize", "graph", "suggest", "log", "vault", "requests", "views", "audit"),
    *("db", "kernelspec", "trace", "learn"),
)  # fmt: skip


def names() -> list[str]:
    """Return the words after `healkit`, in the order of its help."""
    first_words = dict.fromkeys(words.split()[0] for words in (*_HOMES, *_of_parts()))
    return sorted(first_words, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def find(name: str) -> Command | Group | None:
    """Return the command or group of that name; None if there is none.

    A command of another package that cannot be loaded is left out, with a warning in the log. A command of healkit is
    only left out if it needs a part that was removed.
    """
    if name in _HOMES:
        try:
            module = importlib.import_module(f"healkit.faces.{_HOMES[name]}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("healkit.parts."):
                raise
            return None
        row: Command | Group | None = module.COMMANDS[name]
    else:
        row = _made(name)
    if isinstance(row, Group):
        below = {words: words.partition(" ")[2] for words in _of_parts() if words.startswith(f"{name} ")}
        more = {
            word: command for words, word in below.items() if isinstance(command := _made(words), Command)
        }
        row = row.plus(more)
    return row


def group(name: str) -> Group:
    """Return the group of that name; raise `UsageInvalid` if its part is not installed."""
    row = find(name)
    if not isinstance(row, Group):
        raise UsageInvalid(
            f"There are no commands for {name} here.", hint="The part that has them is not installed."
        )
    return row


def _of_parts() -> Mapping[str, Callable[[], Command | Group]]:
    from healkit import hooks  # late, because a command of the core needs no plug-in

    makers: dict[str, Callable[[], Command | Group]] = {}
    for rows in hooks.every("commands"):  # the last registered first, so that healkit's own wins
        makers |= rows
    return makers


def _made(words: str) -> Command | Group | None:
    from healkit import hooks

    if (maker := _of_parts().get(words)) is None:
        return None
    row: Command | Group | None = hooks.made_row(
        "command healkit", words, maker, own=words.split()[0] in _ORDER
    )
    return row

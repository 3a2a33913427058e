"""MCP servers' settings: names, commands and addresses."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from healkit.contracts.tools import is_valid_name
from healkit.errors import ConfigError
from healkit.plain_text import shown_address
from healkit.runtime.mcp.content import identifier

#: Names that are providers of healkit's own.
RESERVED = frozenset({"host", "vault", "healkit"})
#: Long, because `npx` and `uvx` may have to fetch the server first.
START_TIMEOUT_S = 30.0


@dataclasses.dataclass(frozen=True)
class ServerSpec:
    """Settings of one server: a `command` that speaks over stdio, or the `url` of one that speaks streamable HTTP.

    env: added to a small safe environment (HOME, PATH and the like); a server does not inherit the rest of yours.
    headers: sent with each request to `url`. Neither is ever shown: that is where keys are.
    start_timeout_s: what it may take until it has listed its tools.

    Raises `ConfigError` for what could not work.
    """

    name: str
    command: Sequence[str | os.PathLike[str]] | None = None
    url: str | None = dataclasses.field(default=None, repr=False)
    env: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    cwd: str | Path | None = None
    headers: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    start_timeout_s: float = START_TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        if not is_valid_name(self.name) or self.name in RESERVED:
            why = "healkit's own" if self.name in RESERVED else "no identifier"
            raise ConfigError(
                f"{self.name!r} cannot be an MCP server's name: it is {why}.",
                hint="It is written as mcp.<name>.<tool>(…).",
            )
        if (self.command is None) == (self.url is None):
            raise self._wrong("needs a command=[…] or a url=…, one of the two")
        if self.command is not None:
            self._check_command(self.command)
        elif not str(self.url).startswith(("http://", "https://")):
            raise self._wrong(
                f"has url={shown_address(str(self.url))!r}, which is not an http:// or https:// address"
            )
        if not self.start_timeout_s > 0:
            raise self._wrong(f"has start_timeout_s={self.start_timeout_s!r}, which must be greater than 0")

    def __str__(self) -> str:
        """Return its command line, or its address without what may be a key."""
        return shlex.join(map(str, self.command)) if self.command else shown_address(str(self.url))

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return "http" if self.command is None else "stdio"

    def _check_command(self, command: Any) -> None:
        if isinstance(command, str):
            raise self._wrong(f"has a command that is one text: use command={shlex.split(command)!r}")
        try:
            words = tuple(os.fspath(word) for word in command)
        except TypeError:
            words = ()
        if not words or not words[0] or not all(isinstance(word, str) for word in words):
            raise self._wrong(f"has command={command!r}, which is not a list of texts")
        object.__setattr__(self, "command", words)  # so that a list and a tuple are the same command

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(f"The MCP server {self.name!r} {what}.")


def read_specs(path: str | Path) -> list[ServerSpec]:
    """Read the servers of a file with the `mcpServers` object that most MCP clients share.

    Names are mapped to identifiers (`brave-search` is `brave_search`); entries that are `"disabled": true`, and
    settings that are for other clients, are passed over. Raises `ConfigError`, naming the file and the entry.
    """
    try:
        found = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"Cannot read MCP servers from {str(path)!r}: {reason}.") from None
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
        raise ConfigError(
            f"{str(path)!r} has no mcpServers object.",
            hint='It looks like {"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}.',
        )
    specs: dict[str, ServerSpec] = {}
    for given, entry in servers.items():
        if not entry.get("disabled"):
            spec = _spec_of(identifier(given), entry)
            if spec.name in specs:
                raise ConfigError(f"{str(path)!r} has two MCP servers that would both be mcp.{spec.name}.")
            specs[spec.name] = spec
    return list(specs.values())


def _spec_of(name: str, entry: dict[str, Any]) -> ServerSpec:
    kind = entry.get("type", entry.get("transport"))
    if kind not in {None, "stdio", "http", "streamable-http", "streamable_http", "streamableHttp"}:
        raise ConfigError(
            f"The MCP server {name!r} speaks {kind!r}.", hint="healkit speaks stdio and streamable HTTP."
        )
    command, args = entry.get("command"), entry.get("args") or []
    if command is not None and (not isinstance(command, str) or not isinstance(args, list)):
        raise ConfigError(f"The MCP server {name!r} needs a command (a text) and args (a list of texts).")
    for field in ("env", "headers"):
        values = entry.get(field) or {}
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ConfigError(f"{field} of the MCP server {name!r} is not an object of texts.")
    return ServerSpec(
        name,
        command=None if command is None else [command, *args],
        url=entry.get("url"),
        env=entry.get("env"),
        cwd=entry.get("cwd"),
        headers=entry.get("headers"),
    )

"""MCP servers and their messages, as plain data.

The protocol's objects end here: tools become definitions, results become values that JSON can hold.
"""

from __future__ import annotations

import dataclasses
import keyword
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from healkit.core.contracts.tools import ToolDefinition, is_valid_name
from healkit.errors import ConfigError, McpError
from healkit.plain_text import shown_address

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, Tool


#: Names of healkit's own providers.
RESERVED = frozenset({"host", "vault", "healkit"})
#: Long, because `npx` and `uvx` may have to fetch the server first.
START_TIMEOUT_S = 30.0


@dataclasses.dataclass(frozen=True)
class ServerSpec:
    """Settings of one server: the `command` of a stdio server, or the `url` of a streamable HTTP server.

    env: Added to a small safe environment (HOME, PATH and the like); a server does not inherit the rest of your
    environment. headers: Sent with each request to `url`. Both are never shown, because they contain keys.
    start_timeout_s: Time limit until it has listed its tools.

    Raises `ConfigError` for invalid settings.
    """

    name: str
    command: Sequence[str | os.PathLike[str]] | None = None
    url: str | None = dataclasses.field(default=None, repr=False)
    env: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    cwd: str | Path | None = None
    headers: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    start_timeout_s: float = START_TIMEOUT_S

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if not is_valid_name(self.name) or self.name in RESERVED:
            why = "healkit uses it" if self.name in RESERVED else "it is not an identifier"
            raise ConfigError(
                f"{self.name!r} cannot be an MCP server's name: {why}.",
                hint="Tools write it as mcp.<name>.<tool>(…).",
            )
        if (self.command is None) == (self.url is None):
            raise self._wrong("needs either a command=[…] or a url=…")
        if self.command is not None:
            self._check_command(self.command)
        elif not str(self.url).startswith(("http://", "https://")):
            raise self._wrong(
                f"has url={shown_address(str(self.url))!r}, which is not an http:// or https:// address"
            )
        if not self.start_timeout_s > 0:
            raise self._wrong(f"has start_timeout_s={self.start_timeout_s!r}, which must be greater than 0")

    def __str__(self) -> str:
        """Return its command line, or its address without possible keys."""
        return shlex.join(map(str, self.command)) if self.command else shown_address(str(self.url))

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return "http" if self.command is None else "stdio"

    def _check_command(self, command: str | Sequence[str | os.PathLike[str]]) -> None:
        if isinstance(command, str):
            raise self._wrong(f"has a command that is one string: use command={shlex.split(command)!r}")
        try:
            words = tuple(os.fspath(word) for word in command)
        except TypeError:
            words = ()
        if not words or not words[0] or not all(isinstance(word, str) for word in words):
            raise self._wrong(f"has command={command!r}, which is not a list of strings")
        object.__setattr__(self, "command", words)  # so that a list and a tuple are the same command

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(f"The MCP server {self.name!r} {what}.")


def read_specs(path: str | Path) -> list[ServerSpec]:
    """Read the servers of a file with the `mcpServers` object that most MCP clients share.

    Names are mapped to identifiers (`brave-search` is `brave_search`). Entries with `"disabled": true`, and settings
    for other clients, are skipped. Raises `ConfigError`, naming the file and the entry.
    """
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"Cannot read MCP servers from {str(path)!r}: {reason}.") from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not all(isinstance(entry, dict) for entry in servers.values()):
        raise ConfigError(
            f"{str(path)!r} has no mcpServers object.",
            hint='It looks like {"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}.',
        )
    specs: dict[str, ServerSpec] = {}
    for raw_name, entry in servers.items():
        if not entry.get("disabled"):
            spec = _spec_of(identifier(raw_name), entry)
            if spec.name in specs:
                raise ConfigError(
                    f"{str(path)!r} has two MCP servers that would both be called mcp.{spec.name}."
                )
            specs[spec.name] = spec
    return list(specs.values())


def _spec_of(name: str, entry: dict[str, Any]) -> ServerSpec:
    kind = entry.get("type", entry.get("transport"))
    if kind not in {None, "stdio", "http", "streamable-http", "streamable_http", "streamableHttp"}:
        raise ConfigError(
            f"The MCP server {name!r} uses the transport {kind!r}.",
            hint="healkit supports stdio and streamable HTTP.",
        )
    command, args = entry.get("command"), entry.get("args") or []
    if command is not None and (not isinstance(command, str) or not isinstance(args, list)):
        raise ConfigError(f"The MCP server {name!r} needs a command (a string) and args (a list of strings).")
    for field in ("env", "headers"):
        values = entry.get(field) or {}
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise ConfigError(f"{field} of the MCP server {name!r} is not an object of strings.")
    return ServerSpec(
        name,
        command=None if command is None else [command, *args],
        url=entry.get("url"),
        env=entry.get("env"),
        cwd=entry.get("cwd"),
        headers=entry.get("headers"),
    )


# Messages.


def identifier(name: str) -> str:
    """Return the name as Python can write it: `read-file` is `read_file`, `3d` is `tool_3d`, `import` is `import_`."""
    mapped = re.sub(r"\W", "_", name).lstrip("_") or "tool"
    if not mapped.isidentifier():
        mapped = f"tool_{mapped}"
    return f"{mapped}_" if keyword.iskeyword(mapped) else mapped


def by_identifier(server: str, tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools under their names in Python; raises `McpError` if two would have the same name."""
    tools_by_name: dict[str, Tool] = {}
    for tool in tools:
        name = identifier(tool.name)
        if name in tools_by_name:
            raise McpError(
                f"The MCP server {server!r} has two tools that would both be called mcp.{server}.{name}: "
                f"{tools_by_name[name].name!r} and {tool.name!r}.",
                hint="Rename one of them on the server.",
            )
        tools_by_name[name] = tool
    return tools_by_name


def definition_of(server: str, name: str, tool: Tool) -> ToolDefinition:
    """Return the tool as a worker may see it, under its name in Python."""
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    acts = hints is not None and hints.destructive_hint is True and not read_only
    return ToolDefinition(
        server, name, tool.description or tool.title or "", _schema(tool.input_schema), read_only, acts
    )


def result_value(result: CallToolResult, tool: Tool | None) -> Any:
    """Return a tool's value: its structured content if it has one, otherwise its texts, joined, and its other parts.

    Text is never read as JSON, because only the server knows its meaning; it uses structured content for JSON. Raises
    `McpError` with the server's own text for an error result.
    """
    parts = [_part(block) for block in result.content]
    if result.is_error:
        text = "\n".join(part for part in parts if isinstance(part, str)).strip()
        raise McpError(text or "The tool failed, and the server did not say why.")
    if result.structured_content is not None:
        return _unwrapped(result.structured_content, tool)
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts) if parts else None
    return parts[0] if len(parts) == 1 else parts


def _part(block: ContentBlock) -> Any:
    """Return one block of content: text as it is, images, sound and blobs as {mime_type, base64, size_bytes}."""
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":
        return _blob(block.data, block.mime_type)
    if block.type == "resource_link":
        return {"uri": str(block.uri), "name": block.name, "mime_type": block.mime_type}
    resource = block.resource
    text = getattr(resource, "text", None)
    return text if text is not None else _blob(getattr(resource, "blob", ""), resource.mime_type)


def _blob(data: str, mime_type: str | None) -> dict[str, Any]:
    size_bytes = len(data) * 3 // 4 - data[-2:].count("=")
    return {"mime_type": mime_type or "application/octet-stream", "base64": data, "size_bytes": size_bytes}


def _unwrapped(structured: object, tool: Tool | None) -> Any:
    """Return the value without the `{"result": …}` that Python SDKs put around a value that is not an object.

    They mark it in the output schema: by their own key, or by a title made of the tool's name.
    """
    schema = (tool.output_schema if tool else None) or {}
    wrapped = schema.get("x-fastmcp-wrap-result") or (
        tool is not None and schema.get("title") == f"{identifier(tool.name)}Output"
    )
    if not wrapped or not isinstance(structured, dict) or set(structured) != {"result"}:
        return structured
    return structured["result"] if set(schema.get("properties", ())) == {"result"} else structured


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with `properties` and `required` in the forms that a proxy's signature needs."""
    properties, required = schema.get("properties"), schema.get("required")
    return {
        **schema,
        "properties": {
            name: entry if isinstance(entry, dict) else {}
            for name, entry in (properties if isinstance(properties, dict) else {}).items()
        },
        "required": [name for name in required if isinstance(name, str)]
        if isinstance(required, list)
        else [],
    }

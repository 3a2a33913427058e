"""MCP messages as plain data.

The protocol's objects end here: tools become definitions, results become values that JSON can hold.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from healkit.contracts.tools import ToolDefinition
from healkit.errors import McpError

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, Tool


def identifier(name: str) -> str:
    """Return the name as Python can write it: `read-file` is `read_file`, `3d` is `tool_3d`, `import` is `import_`."""
    mapped = re.sub(r"\W", "_", name).lstrip("_") or "tool"
    if not mapped.isidentifier():
        mapped = f"tool_{mapped}"
    return f"{mapped}_" if keyword.iskeyword(mapped) else mapped


def by_identifier(server: str, tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools under their names in Python; raises `McpError` where two would have the same one."""
    found: dict[str, Tool] = {}
    for tool in tools:
        name = identifier(tool.name)
        if name in found:
            raise McpError(
                f"The MCP server {server!r} has two tools that would both be mcp.{server}.{name}: "
                f"{found[name].name!r} and {tool.name!r}.",
                hint="Only one of them can be; rename one on the server.",
            )
        found[name] = tool
    return found


def definition_of(server: str, name: str, tool: Tool) -> ToolDefinition:
    """Return the tool as a worker may see it, under its name in Python."""
    return ToolDefinition(server, name, tool.description or tool.title or "", _schema(tool.input_schema))


def value_of(result: CallToolResult, tool: Tool | None) -> Any:
    """Return a tool's value: its structured content where it has one, else its texts, joined, and its other parts.

    Text is never read as JSON: only the server knows whether it is meant so, and says it by structured content.
    Raises `McpError` with the server's own text for a result that is an error.
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


def _unwrapped(structured: Any, tool: Tool | None) -> Any:
    """Return the value without the `{"result": …}` that Python SDKs put around a value that is no object.

    They say so in the output schema: by a key of its own, or by a title made of the tool's name.
    """
    schema = (tool.output_schema if tool else None) or {}
    wrapped = schema.get("x-fastmcp-wrap-result") or (
        tool is not None and schema.get("title") == f"{identifier(tool.name)}Output"
    )
    alone = isinstance(structured, dict) and set(structured) == {"result"}
    return (
        structured["result"]
        if wrapped and alone and set(schema.get("properties", ())) == {"result"}
        else structured
    )


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with `properties` and `required` of the shapes that a proxy's signature is made from."""
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

"""Answers as content of the protocol.

A value becomes the same JSON that people see: frames and arrays as previews with a link to the data view, pictures as
images. A failure is a result with `isError`, so that no client takes it for a success; it includes the next step.
Everything is sanitised as in all other displays, then cut, with the address of the rest.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from mcp_types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent

from healkit.commands.agents import uri
from healkit.core.crossing.values import is_plain, readable
from healkit.core.rendering import cleaning
from healkit.errors import HealkitError
from healkit.faces.mcp_server.large_results import LARGE_BYTES, PART_BYTES, Kind
from healkit.plain_text import visible

if TYPE_CHECKING:
    from healkit.app import Healkit
    from healkit.core.runtime.execution import Execution
    from healkit.faces.mcp_server.clients import OwnResults
    from healkit.parts.views.view_records import DataView

#: Maximum length of a text, of a tool's printed output and of a large result, in characters; and size of a
#: picture.
TEXT_MAX_CHARS, PRINTED_MAX_CHARS, IMAGE_MAX_BYTES = 20_000, 4_000, 4 * 1024 * 1024
#: Number of characters that are cleaned of a text whose beginning is shown: no secret that begins there is
#: longer.
_READ_CHARS = 16 * 1024
#: Maximum numbers of pictures in an answer, and of named frames and columns.
_IMAGES_MAX, _FRAMES_MAX, _COLUMNS_MAX = 8, 10, 20
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")

#: Code → the next step for an agent, if the error's own is for Python or a person.
_NEXT = {
    "TOOL_EXISTS": "To change a tool, send its new code with propose_patch.",
    "CODE_SYNTAX": "Correct the code and send it again.",
    "TOOL_SHAPE": "Define one function with the tool's name.",
    "REVISION_CONFLICT": "Look at the tool with inspect_tool, and propose a patch of what it is now.",
    "PATCH_REQUEST_NOT_FOUND": "propose_patch and heal make requests.",
    "HEAL_ERROR": "Run the tool with the input that fails, or write it with an example of what is right.",
    "TOOL_TIMEOUT": "Ask for a longer timeout_s, or make the code faster.",
    "TOOL_KILLED": "",
}
Json = dict[str, Any]


def data_answer(data: Json, *, exact: tuple[str, ...] = ()) -> CallToolResult:
    """Return JSON data as an answer, cleaned; `exact` are keys whose values are not changed, such as `code`.

    If it is too long, each long text in it is cut, so that a program can still parse the rest.
    """
    cleaned = cleaning.data(data, exact=exact)
    if len(_json(cleaned)) > TEXT_MAX_CHARS:
        cleaned = {key: value if key in exact else _shortened(value) for key, value in cleaned.items()}
    return CallToolResult(content=[_text(_cut(_json(cleaned))[0])], structured_content=cleaned)


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > PRINTED_MAX_CHARS:
        return f"{value[:PRINTED_MAX_CHARS]}… [cut: {PRINTED_MAX_CHARS:,} of {len(value):,} characters]"
    if isinstance(value, dict):
        return {key: _shortened(part) for key, part in value.items()}
    return [_shortened(part) for part in value] if isinstance(value, list) else value


def text_answer(text: str, **structured: Any) -> CallToolResult:
    """Return a text as an answer, cleaned, with its structured data for a program."""
    cleaned = cleaning.text(text)
    cut_text, _ = _cut(cleaned)
    return CallToolResult(
        content=[_text(cut_text)], structured_content={"result": cut_text, **cleaning.data(structured)}
    )


def execution_answer(hk: Healkit, execution: Execution, own: OwnResults) -> CallToolResult:
    """Return the outcome of an execution: its value, or its failure with `isError`."""
    execution = dataclasses.replace(execution, outputs=_beginning(execution.outputs))
    if execution.failure is not None:
        return _failed(execution)
    value, notes = readable(execution.value, hk.recorder.secret_columns)
    where = uri("executions", execution.trace_id if execution.log_id is None else execution.log_id, "result")
    structured: Json = {"log_id": execution.log_id, "duration_ms": round(execution.duration_ms or 0.0, 1)}
    links: list[ContentBlock] = []
    if _exceeds(value, LARGE_BYTES):
        kind: Kind = "text" if isinstance(value, str) else "json"
        whole = value if isinstance(value, str) else _json(value)
        large_result = own.large.keep(where, whole, kind)
        cleaned = cleaning.text(visible(whole[:_READ_CHARS])) if kind == "text" else _short_json(value)
        text = f"{cleaned[:PRINTED_MAX_CHARS]}… [cut: the result has {len(whole):,} characters; read {where}]"
        structured |= {"cut": True, "preview": cleaned[:PRINTED_MAX_CHARS], "resource": where}
        links.append(_link_to_result(where, large_result.size_bytes))
    else:
        cleaned = cleaning.data(value)
        whole = visible(cleaned) if isinstance(cleaned, str) else _json(cleaned)
        text, cut = _cut(whole, where)
        if cut:
            own.large.keep(where, whole, "text", is_clean=True)
        structured |= {"cut": True} if cut else {"result": cleaned}
    content: list[ContentBlock] = [_text(text), *links, *_printed(execution), *_pictures(execution)]
    for view in _views_of(hk, execution):
        content.append(link_to(view))
        structured.setdefault("views", []).append(uri("views", view.name))
    notes = [*(f"result {note}" for note in notes), *execution.conversions, *execution.warnings]
    if notes:
        structured["notes"] = [cleaning.text(note.replace(" $: ", ": ", 1)) for note in notes]
        content.append(_text("Note: " + " ".join(structured["notes"])))
    return CallToolResult(content=content, structured_content=structured)


def is_large(execution: Execution) -> bool:
    """Return whether the answer takes long to make, because its result or its outputs are large."""
    return _exceeds([execution.value, execution.outputs], LARGE_BYTES)


def _exceeds(value: object, size: int) -> bool:
    """Return whether plain JSON is larger than about this size; it reads no further than that."""
    pending: list[object] = [value]
    while pending and size >= 0:
        part = pending.pop()
        size -= 2
        if isinstance(part, str):
            size -= len(part)
        elif isinstance(part, Mapping):
            pending.extend(itertools.islice(itertools.chain(part, part.values()), max(0, size)))
        elif isinstance(part, list | tuple):
            pending.extend(itertools.islice(part, max(0, size)))
    return size < 0


def _short_json(shown: object) -> str:
    """Return the beginning of large JSON data, cleaned, with each of its parts cut."""
    return _json(cleaning.sanitizer().clean(shown, limit_bytes=PRINTED_MAX_CHARS).value)


def _link_to_result(where: str, size_bytes: int) -> ResourceLink:
    parts = -(-size_bytes // PART_BYTES)
    return ResourceLink(
        uri=where,
        name="result",
        description=f"The whole result, cleaned, in about {parts:,} parts: {where}/1, {where}/2 and so on.",
        mime_type="text/plain",
        size=size_bytes,
    )


def link_to(view: DataView) -> ResourceLink:
    """Return a link to a data view, with its shape and columns."""
    columns = ", ".join(f"{column.name}: {column.dtype}" for column in view.columns[:_COLUMNS_MAX])
    more = len(view.columns) - _COLUMNS_MAX
    rest = f", and {more:,} more" if more > 0 else ""
    description = f"{view.kind} of shape {view.shape}" + (f" with {columns}{rest}" if columns else "")
    return ResourceLink(
        uri=uri("views", view.name),
        name=view.name,
        description=cleaning.text(visible(description)),
        mime_type="application/json",
        size=view.size_bytes,
    )


def error_answer(error: HealkitError) -> CallToolResult:
    """Return a refusal, with its code and the next step."""
    structured: Json = {"code": error.code, "type": type(error).__name__, "message": error.message}
    structured |= {"next": _NEXT.get(error.code, error.hint.strip()), "log_id": error.log_id}
    return _error({name: value for name, value in structured.items() if value not in (None, "")})


def failure_data(execution: Execution) -> Json:
    """Return a failure for an agent: what, where in the tool's own lines, why, and the next step."""
    failure = execution.failure
    assert failure is not None
    tool_frames = [frame for frame in failure.frames if frame.in_tool]
    explained = execution.explain()
    details: Json = {
        "code": failure.code,
        "type": failure.ename,
        "message": failure.evalue,
        "tool": execution.label,
        "frames": [
            {"line": tool_frame.lineno, "function": tool_frame.name, "source": tool_frame.line}
            for tool_frame in tool_frames[-5:]
        ],
        "log_id": execution.log_id,
    }
    if explained is not None:
        details |= {
            "what": explained.what,
            "why": explained.why,
            "hint": explained.hint,
            "fix": explained.fix,
        }
    details["near"], details["next"] = failure.near, _next(execution)
    return {name: value for name, value in details.items() if value not in (None, "", [], ())}


def _next(execution: Execution) -> str:
    assert execution.failure is not None
    if execution.failure.code in _NEXT:
        return _NEXT[execution.failure.code]
    if execution.revision is None:
        return "Correct the code and run it again."
    return (
        f"Send the whole corrected code with propose_patch(name={execution.tool_name!r}, …), or call "
        f"heal(name={execution.tool_name!r}). get_execution has the full traceback."
    )


def _failed(execution: Execution) -> CallToolResult:
    details = failure_data(execution)
    if execution.log_id is not None:
        details["resource"] = uri("executions", execution.log_id)
    answer = _error(details)
    answer.content += [*_printed(execution), *_pictures(execution)]
    return answer


def _error(problem: Json) -> CallToolResult:
    cleaned = cleaning.data(problem)
    lines = [f"{cleaned['code']}: {cleaned.get('type', '')}: {cleaned.get('message', '')}".rstrip(": ")]
    lines += [
        f"  line {frame['line']}, {frame['function']}: {frame['source']}"
        for frame in cleaned.get("frames", ())
    ]
    lines += [f"{name}: {cleaned[name]}" for name in ("what", "why", "hint", "fix") if cleaned.get(name)]
    lines += [f"log_id: {cleaned['log_id']}"] if cleaned.get("log_id") is not None else []
    lines += [f"next: {cleaned['next']}"] if cleaned.get("next") else []
    text, _ = _cut(visible("\n".join(lines)), cleaned.get("resource"))
    message = str(cleaned.get("message", ""))
    cleaned["message"], _ = _cut(message, cleaned.get("resource"))
    return CallToolResult(content=[_text(text)], structured_content={"error": cleaned}, is_error=True)


def _beginning(outputs: Sequence[Json]) -> list[Json]:
    """Return the outputs cut to the beginning of their texts, and cleaned."""
    short = []
    for output in outputs:
        if output.get("output_type") == "stream":
            short.append({**output, "text": "".join(output.get("text", ""))[:_READ_CHARS]})
        elif "text/plain" in (data := output.get("data", {})):
            text = "".join(data["text/plain"])[:_READ_CHARS]
            short.append({**output, "data": {**data, "text/plain": text}})
        else:
            short.append(output)
    return short


def _printed(execution: Execution) -> list[ContentBlock]:
    """Return the printed and displayed output as text."""
    texts = []
    for output in execution.outputs:
        text = (
            output.get("text")
            if output.get("output_type") == "stream"
            else output.get("data", {}).get("text/plain")
        )
        if isinstance(text, list | str) and not _has_picture(output):
            texts.append(text if isinstance(text, str) else "".join(text))
    printed = cleaning.text(visible("".join(texts))).strip() if texts else ""
    if not printed:
        return []
    return [_text(f"Printed:\n{_shortened(printed)}")]


def _has_picture(output: Mapping[str, Any]) -> bool:
    return any(kind in output.get("data", {}) for kind in _IMAGE_TYPES)


def _pictures(execution: Execution) -> Iterator[ContentBlock]:
    """Yield the displayed pictures; a text replaces one that is too large or damaged."""
    count = 0
    for output in execution.outputs:
        data = output.get("data", {})
        kind = next((kind for kind in _IMAGE_TYPES if kind in data), None)
        if kind is None:
            continue
        count += 1
        raw = data[kind] if isinstance(data[kind], str) else "".join(data[kind])
        encoded = base64.b64encode(raw.encode()).decode() if kind == "image/svg+xml" else "".join(raw.split())
        size_bytes = len(encoded) * 3 // 4
        if count > _IMAGES_MAX or size_bytes > IMAGE_MAX_BYTES or not _is_base64(encoded):
            yield _text(f"[a picture of {size_bytes:,} bytes ({kind}) is left out]")
        else:
            yield ImageContent(data=encoded, mime_type=kind)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _views_of(hk: Healkit, execution: Execution) -> list[DataView]:
    """Return the views with the frames and arrays of its result; called only if it has any."""
    if is_plain(execution.value):
        return []
    return hk.views.used(execution.trace_id)["result"][:_FRAMES_MAX]


def _cut(text: str, where: str | None = None) -> tuple[str, bool]:
    if len(text) <= TEXT_MAX_CHARS:
        return text, False
    rest = f"; the rest: {where}" if where else ""
    return f"{text[:TEXT_MAX_CHARS]}… [cut: {TEXT_MAX_CHARS:,} of {len(text):,} characters{rest}]", True


def _json(data: object) -> str:
    return msgspec.json.encode(data).decode()


def _text(text: str) -> TextContent:
    return TextContent(text=text)

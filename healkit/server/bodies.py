"""Request bodies: what is accepted of them, and how large.

A body is bounded twice: as it arrives, by whoever reads it from the connection, and as it unfolds, here. A few
kilobytes of gzip can be gigabytes of zeros, so it is unpacked only as far as one byte beyond the limit.
"""

from __future__ import annotations

import zlib

from healkit.errors import RequestRefused

#: zlib's window bits for a gzip header and trailer (zlib's manual, inflateInit2).
_GZIP = 16 + zlib.MAX_WBITS


def check_content_type(value: str) -> None:
    """Refuse what is not JSON in UTF-8; an empty value is taken for JSON. Raises `RequestRefused`."""
    kind, *parameters = (part.strip().lower() for part in value.split(";"))
    if kind and kind != "application/json":
        raise RequestRefused(
            "CONTENT_TYPE",
            f"A body of type {kind[:100]!r} is not read.",
            hint="Send JSON, with Content-Type: application/json.",
        )
    for parameter in parameters:
        name, _, charset = parameter.partition("=")
        if name.strip() == "charset" and charset.strip(" \"'") not in {"utf-8", "utf8"}:
            raise RequestRefused(
                "CONTENT_TYPE",
                f"A body in {charset.strip()[:100]!r} is not read.",
                hint="JSON is sent in UTF-8 (RFC 8259, section 8.1).",
            )


def too_large(limit: int) -> RequestRefused:
    """The refusal of a body with more bytes than that."""
    return RequestRefused(
        "BODY_TOO_LARGE",
        f"The body has more than {limit:,} bytes.",
        hint="Send fewer traces at once, or raise HEALKIT_COLLECT_MAX_BYTES on the server.",
    )


def unpacked(data: bytes, encoding: str, limit: int) -> bytes:
    """The body as it was before its Content-Encoding, of at most `limit` bytes; raises `RequestRefused`."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return data
    if encoding not in {"gzip", "x-gzip"}:
        raise RequestRefused(
            "CONTENT_ENCODING",
            f"A body in Content-Encoding {encoding[:100]!r} is not read.",
            hint="Send it as it is, or in gzip.",
        )
    unzip = zlib.decompressobj(_GZIP)
    try:
        body = unzip.decompress(data, limit + 1)
    except zlib.error as error:
        raise RequestRefused("BODY_INVALID", f"The body is not gzip: {error}.") from None
    if len(body) > limit:
        raise too_large(limit)
    if not unzip.eof:
        raise RequestRefused("BODY_INVALID", "The body's gzip ends before its end.")
    return body

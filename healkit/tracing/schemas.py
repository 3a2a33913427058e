"""JSON Schema of the run folder's files.

Generated from the types that write and read them; docs/schemas holds the result, and a test compares the two.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from healkit.contracts.catalogue import catalogue
from healkit.contracts.events import TraceEvent
from healkit.contracts.runs import EvidenceManifest, RunManifest

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: File name → the type that it describes.
FILES: dict[str, type[msgspec.Struct]] = {
    "trace_event": TraceEvent,
    "run_manifest": RunManifest,
    "evidence_manifest": EvidenceManifest,
}


def schemas() -> dict[str, dict[str, Any]]:
    """Return name → schema (draft 2020-12) of one line of trace.jsonl and of each manifest."""
    found = {name: {"$schema": _DIALECT, **msgspec.json.schema(kind)} for name, kind in FILES.items()}
    # The codes come from the error classes, which a type annotation cannot name.
    found["trace_event"]["$defs"]["ErrorObject"]["properties"]["error_code"] = {"enum": list(catalogue())}
    for schema in found.values():
        for part in schema["$defs"].values():
            if "description" in part:  # a docstring, which Python before 3.13 keeps indented
                part["description"] = cleandoc(part["description"])
    return found

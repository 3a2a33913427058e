"""Exact values between host and worker.

What is passed arrives equal and of the same type, or is refused.
"""

from healkit.contracts.encoding import TAG, Preview, is_plain
from healkit.values.comparing import equal
from healkit.values.crossing import (
    SecretColumns,
    decode,
    encode,
    encode_for_log,
    for_schema,
    is_frame_outline,
    is_tabular,
    large_parts,
    preview,
    readable,
    readable_json,
    restore,
)
from healkit.values.kept import (
    adopted,
    as_parts,
    as_text,
    call_text,
    has_tags,
    kept,
    meets,
    recorded_frame,
    recorded_text,
    remade,
    same,
    shown,
    table_of,
    text_of,
    why_different,
    with_texts,
)
from healkit.values.plain import (
    EXPANDED_MAX_BYTES,
    MARK,
    BadValue,
    Buffers,
    CannotCross,
    TooLarge,
    is_whole,
    outweighs,
)

__all__ = [
    "EXPANDED_MAX_BYTES", "MARK", "TAG", "BadValue", "Buffers", "CannotCross", "Preview", "SecretColumns",
    "TooLarge", "adopted", "as_parts", "as_text", "call_text", "decode", "encode", "encode_for_log", "equal",
    "for_schema", "has_tags", "is_frame_outline", "is_plain", "is_tabular", "is_whole", "kept", "large_parts",
    "meets", "outweighs", "preview", "readable", "readable_json", "recorded_frame", "recorded_text", "remade",
    "restore", "same", "shown", "table_of", "text_of", "why_different", "with_texts",
]  # fmt: skip

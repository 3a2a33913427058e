"""Reading executed cells."""

from __future__ import annotations

from typing import Any

BROKEN = "%%tool fibonacci\ndef fibonacci(n: int):\n    print('working on', n)\n    return n / 0"
FIXED = "%%tool fibonacci --reason 'no zero'\ndef fibonacci(n: int):\n    return n if n < 2 else n * 11 // 2"


def text_of(cell: Any) -> str:
    """Return what a cell shows as text, its error included."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts += output.traceback
        else:
            parts.append(output.data.get("text/plain", ""))
    return "\n".join(parts)


def error_of(cell: Any) -> Any:
    """Return the cell's error output."""
    return next(output for output in cell.outputs if output.output_type == "error")

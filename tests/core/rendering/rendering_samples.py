"""Parts of executions to draw."""

from __future__ import annotations

import datetime as dt

from healkit.core.contracts.execution import CallRecord
from healkit.core.contracts.failure import Frame

NOW = dt.datetime(2025, 3, 1, 14, 2, 11, tzinfo=dt.UTC)
OWN = "<fibonacci@1>"
FRAMES = [
    Frame(OWN, 12, "fibonacci", "    return helper(n)", in_tool=True),
    Frame(OWN, 9, "helper", "    return json.loads(text)", in_tool=True),
    Frame("/usr/lib/python3.11/json/__init__.py", 346, "loads", "return decode(s)"),
    Frame("/usr/lib/python3.11/json/decoder.py", 337, "decode", "self.raw_decode(s)"),
]
TRACEBACK = (
    'Traceback (most recent call last):\n  File "<fibonacci@1>", line 12, in fibonacci\nValueError: bad'
)
CALLS = [
    CallRecord("t", "t1", "host", "rate", "{}", NOW, True, '{"rate": 3}', duration_ms=3.2),
    CallRecord(
        "t", "t2", "vault", "other", "{}", NOW, False, error_code="TOOL_EXCEPTION", error="KeyError: 'a'"
    ),
]

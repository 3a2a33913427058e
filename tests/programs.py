"""Python in a process of its own, from its code."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def python(code: str, *words: object, warnings: str = "", **options: Any) -> Any:
    """Run the code with these words; return how it ended, and what it printed."""
    command = [sys.executable, *(["-W", warnings] if warnings else []), "-c", code, *map(str, words)]
    options = {"capture_output": True, "text": True, "timeout": 100, "check": False} | options
    return subprocess.run(command, **options)

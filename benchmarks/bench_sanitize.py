"""Cost of sanitising, against one plain regular expression.

Prints one JSON object: 10 KB of each kind of payload through `Sanitizer.clean`, the ratio to the floor (one
case-insensitive scan by `re` for a single word, which any sanitiser needs at the least), and the target of 3 ms. Times
in µs; payload and floor are measured in turns in one run, so that a busy machine slows both. Then, of the secrets of
`secret_samples`, how many of each kind are gone, and how many of its harmless lines were changed.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from secret_samples import KINDS, harmless_lines, samples

from healkit.sanitizer import Sanitizer

ROUNDS = 200
SIZE_BYTES = 10_240
TARGET_US = 3000
FLOOR = re.compile(r"(?i)\b(?:password|secret|token)\b\s*[:=]\s*\S+")


def payloads() -> dict[str, Any]:
    """10 KB each of what tools are given and return; the last is far worse than any real one."""
    source = random.Random(7)
    code = Path(json.__file__).with_name("decoder.py").read_text()
    failure = (
        "Traceback (most recent call last):\n"
        + code[:4000]
        + "\nConnectionError: password=hunter22 refused\n"
    )
    rows = [{"id": n, "name": f"user {n}", "score": source.random(), "on": "2024-01-31"} for n in range(140)]
    numbers = [[source.randrange(10**9) for _ in range(8)] for _ in range(110)]
    contacts = [{"name": f"user {n}", "email": f"user{n}@example.com"} for n in range(40)]
    secrets = "conn = connect(host='db', password='a1b2c3d4', api_key='z9y8x7w6v5')  # jane@example.com\n"
    return {
        "code": (code * 3)[:SIZE_BYTES],
        "traceback": (failure * 3)[:SIZE_BYTES],
        "rows": {"rows": rows},
        "numbers": {"numbers": numbers},
        "contacts": {"contacts": contacts, "note": (code * 3)[:7500]},
        "a secret on every line": (secrets * 200)[:SIZE_BYTES],
    }


def timed_us(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e6


def measured(sanitizer: Sanitizer, value: Any) -> dict[str, float]:
    text = value if isinstance(value, str) else json.dumps(value)
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        ours.append(timed_us(lambda: sanitizer.clean(value)))
        floor.append(timed_us(lambda: FLOOR.findall(text)))
    median, least = statistics.median(ours), statistics.median(floor)
    return {
        "size_bytes": len(text.encode()),
        "clean_us": round(median, 1),
        "plain_re_us": round(least, 1),
        "ratio": round(median / least, 1),
    }


def main() -> None:
    begun = time.perf_counter()
    sanitizer = Sanitizer()
    sanitizer.text("password=hunter22 +49 30 901820")  # reads the tables that are read once
    start_ms = (time.perf_counter() - begun) * 1e3
    gone = {}
    for kind in KINDS:
        cleaned = [(sanitizer.text(text).value, secrets) for text, secrets in samples(kind)]
        kept = sum(any(secret in text for secret in secrets) for text, secrets in cleaned)
        gone[kind] = f"{len(cleaned) - kept} of {len(cleaned)}"
    lines = list(harmless_lines())
    changed = sum(sanitizer.text(line).value != line for line in lines)
    report = {
        "gone": gone,
        "harmless lines changed": f"{changed} of {len(lines)}",
        "rounds": ROUNDS,
        "start_ms": round(start_ms, 1),
        "target_us": TARGET_US,
        "payloads": {name: measured(sanitizer, value) for name, value in payloads().items()},
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

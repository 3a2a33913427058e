"""Cost of sanitising, compared to one regular expression.

Prints one JSON object with these parts:

- 10 KB of each kind of payload through `Sanitizer.clean` in µs, and its ratio to the lower bound. That is one
  case-insensitive scan by `re` for a single word, the minimum of any sanitiser. The target is 3 ms. Payload and lower
  bound are measured in turns in one run, so that a busy machine slows both;
- the ms of each of `hard_texts`, 10 KB of extreme texts;
- for the secrets of `secret_samples`, the numbers of hidden ones of each kind, and of its harmless lines that changed;
- the same for `blind_set`, whose author did not know the sanitiser. There, harmless files are counted too, and
  separately those that contain more than their authors' addresses, and those in which a secret was found;
- the seconds for a megabyte of code, of many secrets, and of the worst texts that a seeded search of `hostile_texts`
  finds.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blind_set import blind_cases, harmless_files
from hostile_texts import FULL_BYTES, many_secrets, repeated, search, seconds_per_mb
from secret_samples import KINDS, harmless_lines, samples

from healkit.parts.sanitizer.sanitizer import Sanitizer

ROUNDS = 200
SIZE_BYTES = 10_240
TARGET_US = 3000
FLOOR = re.compile(r"(?i)\b(?:password|secret|token)\b\s*[:=]\s*\S+")


def payloads() -> dict[str, Any]:
    """Return 10 KB each of typical arguments and results of tools; the last is far worse than any real one."""
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


def hard_texts() -> dict[str, str]:
    """Return 10 KB each of texts without structure, of numbers, or of endless apparent secrets."""
    source = random.Random(6)
    binary = source.randbytes(SIZE_BYTES)
    patterns = {
        "one letter": lambda: "a",
        "one capital": lambda: "A",
        "names and =": lambda: "token=",
        "names": lambda: "pw ",
        "or": lambda: " or '",
        "secrets": lambda: f"api_key=z9y8x7w{source.randrange(1000)} ",
        "logins": lambda: "client.auth('reporter', 'VxePIxIJ2Z') ",
        "+ and digits": lambda: f"+{source.randrange(10**11)} ",
        "00 and digits": lambda: f"00{source.randrange(10**9):09} ",
        "212-555-0147": lambda: "-".join(f"{source.randrange(10**size):0{size}}" for size in (3, 3, 4)) + " ",
        "16 digits": lambda: f"{source.randrange(10**16):016},",
        "IBANs": lambda: f"GB{source.randrange(100):02}WEST{source.randrange(10**14):014} ",
        "mails": lambda: f"u{source.randrange(9999)}@ex{source.randrange(9999)}.com ",
    }
    texts = {"base64": base64.b64encode(binary).decode(), "hex": binary.hex()}
    for name, made in patterns.items():
        texts[name] = "".join(made() for _ in range(SIZE_BYTES))
    return {name: text[:SIZE_BYTES] for name, text in texts.items()}


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


def blind(sanitizer: Sanitizer) -> dict[str, Any]:
    """Count the hidden secrets of the blind set, and the changes in harmless text."""
    gone: dict[str, list[bool]] = {}
    for case in blind_cases():
        cleaned = sanitizer.text(case.text).value
        gone.setdefault(case.kind, []).append(not any(secret in cleaned for secret in case.secrets))
    files = list(harmless_files())
    lines = [line for text in files for line in text.splitlines()]
    return {
        "gone": {kind: f"{sum(of_kind)} of {len(of_kind)}" for kind, of_kind in gone.items()},
        "harmless lines": changes(sanitizer, lines),
        "harmless files": changes(sanitizer, files),
    }


def changes(sanitizer: Sanitizer, texts: list[str]) -> dict[str, int]:
    cleaned = [(text, sanitizer.text(text)) for text in texts]
    changed = [found for text, found in cleaned if found.value != text]
    return {
        "all": len(texts),
        "changed": len(changed),
        "changed for more than e-mail addresses": sum(
            bool(set(found.hidden) - {"email"}) for found in changed
        ),
        "changed for a secret": sum("[REDACTED" in found.value for found in changed),
    }


def megabytes(sanitizer: Sanitizer, seed: int, rounds: int) -> dict[str, Any]:
    """Return the seconds per megabyte of ordinary text, of many small secrets, and of the worst texts found."""
    code = Path(json.__file__).with_name("decoder.py").read_text()
    texts = {"code": repeated(code, FULL_BYTES), "many secrets": many_secrets(FULL_BYTES, seed)}
    usual = {name: round(seconds_per_mb(sanitizer.text, text, 3), 3) for name, text in texts.items()}
    worst = [{"pattern": text, "s": round(cost, 3)} for cost, text in search(seed, rounds)]
    return {**usual, "seed": seed, "rounds": rounds, "worst": worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    begun = time.perf_counter()
    sanitizer = Sanitizer()
    sanitizer.text("password=hunter22 +49 30 901820")  # loads the tables
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
        "blind set": blind(sanitizer),
        "rounds": ROUNDS,
        "start_ms": round(start_ms, 1),
        "target_us": TARGET_US,
        "payloads": {name: measured(sanitizer, value) for name, value in payloads().items()},
        "ms of a hard 10 KB": {
            name: round(seconds_per_mb(sanitizer.clean, text, 10) * len(text) / 1e3, 2)
            for name, text in hard_texts().items()
        },
        "s a megabyte": megabytes(sanitizer, given.seed, given.rounds),
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

"""Secrets of an author who had not seen the sanitiser.

The module also has harmless files.

`data/blind_secrets.json` was written from vendors' documentation by an author who had not read the sanitiser, its tests
or its documentation. All values are random. A `¦` after the second character of each secret prevents alarms of
scanners; `blind_cases` removes it. `harmless_files` takes a seeded sample of installed files, so that no foreign file
is stored here.
"""

from __future__ import annotations

import gzip
import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CASES = Path(__file__).parent / "data" / "blind_secrets.json"
_BAR = "¦"
_LINES_PER_FILE = 40
_SITE, _STDLIB = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")

#: Number of files for each folder and pattern.
_SOURCES = (
    (_SITE, "**/*.py", 60), (_STDLIB, "*/*.py", 40), (_SITE, "**/*.json", 30), (_SITE, "*.dist-info/METADATA", 20), (_SITE, "*.dist-info/RECORD", 10),
    (_SITE, "**/*.ipynb", 10), (_SITE, "**/*.md", 20), (_SITE, "**/*.lock", 5), (_SITE, "**/LICENSE*", 10), (_SITE, "**/*.css", 10), (_SITE, "**/*.js", 15),
    ("/usr/share/doc", "*/copyright", 20), ("/usr/share/doc", "*/changelog*.gz", 20), ("/usr/share/common-licenses", "*", 5), ("/usr/share/perl", "*/*/*.pm", 10),
    ("/usr/lib/node_modules", "npm/**/*.json", 20), ("/usr/lib/node_modules", "npm/**/*.md", 10), ("/var/lib/dpkg/info", "*.md5sums", 10), ("/var/log", "*.log", 5), ("/var/log/apt", "*.log", 2),
)  # fmt: skip


class BlindCase(NamedTuple):
    """Text of the set: the kind of its secrets, and the secrets that must be hidden."""

    kind: str
    text: str
    secrets: list[str]


def blind_cases() -> list[BlindCase]:
    """Read all cases, without the bar in each secret."""
    rows = json.loads(_CASES.read_text(encoding="utf-8").replace(_BAR, ""))
    return [BlindCase(row["kind"], row["text"], row["secret"]) for row in rows]


def harmless_files() -> Iterator[str]:
    """Yield up to 40 lines of each sampled file that is installed here; not healkit's own."""
    source = random.Random(20261122)
    for folder, pattern, count in _SOURCES:
        found = sorted(
            p
            for p in Path(folder).glob(pattern)
            if p.is_file() and "healkit" not in str(p.relative_to(folder))
        )
        for path in source.sample(found, min(count, len(found))):
            try:
                raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                lines = raw.decode().splitlines()
            except (OSError, UnicodeDecodeError):
                continue
            first = source.randrange(max(1, len(lines) - _LINES_PER_FILE))
            yield "\n".join(line[:4000] for line in lines[first : first + _LINES_PER_FILE])

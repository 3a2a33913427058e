"""Suppressions of a linter or the type checker: each says why.

`# noqa: S102 - why` and `# type: ignore[misc]  # why`. What a whole folder needs stands in pyproject.toml, with its
reason there.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("healkit", "tests", "notebooks", "benchmarks")
#: Codes that are broken on purpose; they are data.
DATA = (
    "healkit/parts/teach/gallery/broken",
    "healkit/parts/teach/gallery/healthy",
    "tests/parts/teach/fixes",
)

_SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b", re.IGNORECASE)
_WITH_REASON = re.compile(
    r"#\s*noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)* - \S.*|#\s*type: ignore\[[a-z-]+(?:, ?[a-z-]+)*\]  # \S.*"
)


def unreasoned(lines: Iterator[str]) -> Iterator[int]:
    """Yield the lines with a suppression that says no reason, or not what it suppresses."""
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type == tokenize.COMMENT:
            found = _SUPPRESSION.search(token.string)
            if found and not _WITH_REASON.match(token.string, found.start()):
                yield token.start[0]


@pytest.mark.slow
def test_no_check_is_suppressed_without_a_reason() -> None:
    found = []
    for path in (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(DATA):
            with path.open(encoding="utf-8") as lines:
                found += [f"{name}:{line}" for line in unreasoned(iter(lines))]
    assert found == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("a = 1  # noqa: F401 - its import registers it", False),
        ("a = 1  # type: ignore[misc]  # the base has no types", False),
        ("a = 1  # noqa: F401", True),
        ("a = 1  # noqa", True),
        ("a = 1  # type: ignore[misc]", True),
        ("a = 1  # type: ignore  # why not", True),
        ("a = '# noqa'", False),
    ],
)
def test_a_suppression_names_what_it_suppresses_and_why(line: str, wrong: bool) -> None:
    assert list(unreasoned(iter([f"{line}\n"]))) == ([1] if wrong else [])

"""Ways of writing: none passes the scratch limit.

That holds at each tier, as root and as an ordinary user.

The ways are tried once for each tier and user (conftest.py); a test looks at all of them and names each that passed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scratch_ways import LIMIT_MB, NAMED, WAYS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Facts = dict[str, Any]
PAGE = (Path(__file__).parents[3] / "docs" / "isolation.md").read_text()
#: Endings that mean: the kernel refused it, or the host ended it.
STOPPED = {"TOOL_EXCEPTION", "TOOL_DISK_LIMIT", "TOOL_OUTPUT_LIMIT", "TOOL_OUT_OF_MEMORY"}
#: What a refusal looks like inside; anything else is a mistake in the way itself.
REFUSED = ("OSError", "PermissionError", "FileNotFoundError", "BlockingIOError", "sqlite3.OperationalError", "ValueError: not allowed",
           "ValueError: current limit exceeds", "FileExistsError", "MemoryError", "NotADirectoryError")  # fmt: skip


def passed(way: str, ending: str, value: int | None, told: str) -> str:
    """Say how far past the limit a way came, or what is wrong with it; empty for one that was stopped."""
    allowed = NAMED[way][0] if way in NAMED else LIMIT_MB << 20
    if ending == "SUCCESS":
        return "" if value is not None and value <= allowed else f"held {value:,} bytes"
    if (ending, told.partition(":")[0]) == ("TOOL_CRASHED", "SIGBUS"):
        return ""  # it wrote to a mapped page for which there was no room
    if ending not in STOPPED:
        return f"ended otherwise: {ending} {told}"
    return f"did not try: {told}" if ending == "TOOL_EXCEPTION" and not told.startswith(REFUSED) else ""


@pytest.mark.requirement("SAFE-3")
def test_no_way_of_writing_passes_the_limit(written: Facts) -> None:
    """S3: four ways held 1 GB under a limit of 256 MB, or 60,000 files under one of 20,000."""
    wrong = {way: passed(way, **found) for way, found in written["ways"].items()}
    assert not any(wrong.values()), "".join(f"\n- {way}: {what}" for way, what in wrong.items() if what)


@pytest.mark.requirement("SAFE-3")
def test_nothing_that_was_written_stays_after_the_run(written: Facts) -> None:
    """S3 and S4: folders that could not be listed, or were nested too deeply, stayed on the disk."""
    assert written["left"] == []


def test_what_is_held_beyond_the_limit_is_said_with_its_bound() -> None:
    assert len(WAYS) >= 60
    for way, (_, said) in NAMED.items():
        assert f"| {said} |" in PAGE, way

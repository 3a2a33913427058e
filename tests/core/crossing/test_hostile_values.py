"""Frames, arrays and tables that a worker forges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hostile_streams import LIMIT, NEVER_RAISE

from healkit import Healkit
from healkit.core.crossing import values

pytestmark = pytest.mark.requirement("DATA-4")
PROGRAM = Path(__file__).with_name("hostile_streams.py")
#: What decoding may cost the host: so many bytes for each byte that was sent, and so many MB whatever was sent.
FACTOR, MORE_MB = 16, 80
#: What everything that reads a value afterwards may cost beside that, in MB.
READING_MB = 500
#: Claims that must not arrive; of all others it is enough that they do no harm.
FORBIDDEN = (
    "list_view", "string_view", "binary_view", "run_end_encoded", "union", "extension", "struct<>", "fixed_size_binary[0]",
    "fixed_size_list<item: null>", "compressed", "dictionary in parts", "columns of the same bytes", "one long text",
    "out of range", "2,147,483,647", "1,125,899,906,842,624", "of a range", "of rows only", "of shape [1000000000", "preview of",
    "code points beyond", "a scalar beyond", "truth of 2", "bytes twice", "StringDType", "colliding", "a Fraction", "a subarray",
    "a thousand columns", "codes of a long text",
)  # fmt: skip
#: Claims that have such a word in their name, and hold what may be.
ALLOWED = (
    "times out of range", "moments out of range", "period out of range", "periods out of range",
    "Timestamp out of range",
)  # fmt: skip


def decoded(*arguments: str) -> list[dict[str, Any]]:
    """Run the program and return what it says of each claim; fails where it did not reach the end."""
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (lines[-1:], ran.stderr[-2000:])
    return [line for line in lines if "name" in line]


def check(claims: list[dict[str, Any]]) -> None:
    for claim in claims:
        raised = NEVER_RAISE & claim["raised"].keys()
        assert not raised, claim
        assert claim["decoded_mb"] <= FACTOR * claim["bytes"] / 1e6 + MORE_MB, claim
        assert claim["mb"] <= FACTOR * claim["bytes"] / 1e6 + READING_MB, claim


@pytest.mark.slow
def test_forged_frames_and_tables_are_whole_or_refused_and_cost_little() -> None:
    claims = decoded("short")
    check(claims)
    assert len(claims) > 600
    for claim in claims:
        forbidden = any(word in claim["name"] for word in FORBIDDEN)
        if forbidden and not claim["name"].endswith(ALLOWED):
            assert claim["ended"] != "arrived", claim


@pytest.mark.slow
def test_so_are_those_of_every_type_and_in_every_place() -> None:
    claims = decoded("all")
    check(claims)
    assert len(claims) > 2000
    for claim in claims:
        if any(word in claim["name"] for word in FORBIDDEN[:8]):
            assert claim["ended"] != "arrived", claim


@pytest.mark.slow
def test_so_are_streams_with_random_changes() -> None:
    check(decoded("5000", "1"))


#: Sends a table of views in the place of the result, past the encoder that would refuse it.
FORGED_VIEWS = """
import pandas as pd, pyarrow as pa
from healkit.core.crossing import arrays
arrays._check_types = lambda *args: None
def views(frame: pd.DataFrame):
    return pa.schema([("a", pa.list_view(pa.int64()))]).empty_table()
"""


@pytest.mark.slow
def test_a_table_of_views_does_not_abort_a_host_that_decides(tmp_path: Path) -> None:
    """B13: `to_pandas` ended the host's process for it."""
    program = f"""
import pandas as pd
from healkit import Healkit
with Healkit({str(tmp_path / "healkit.db")!r}) as hk:
    hk.vault.add("views", {FORGED_VIEWS!r})
    choice = {{"type": "execute_data_op", "tool": "views", "params": {{"frame": "sales"}}, "viewName": "v"}}
    hk.decide("Why?", data={{"sales": pd.DataFrame({{"a": [1]}})}}, tools=["views"], chooser=[choice])
    print([row.error_code for row in hk.log.query()])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "TOOL_PROTOCOL" in ran.stdout


def test_a_forged_preview_is_rejected(healkit: Healkit) -> None:
    """B19: its card could not be shown."""
    code = (
        "from healkit.core.crossing import values\n"
        'values.encode = lambda *args, **more: (b\'{"@":["preview",{"shape":1},0]}\', [])\n'
        "def forged():\n    return 1\n"
    )
    healkit.vault.add("forged", code)
    execution = healkit.execute("forged")
    assert execution.failure is not None
    assert execution.failure.code == "TOOL_PROTOCOL"
    assert "preview" in execution.failure.evalue
    assert execution.to_html()


ODD = [
    "np.array(['\\ud800'] * 300)", "pd.interval_range(0, 300)", "np.full(300, 2**62, 'M8[Y]')",
    "pd.Series(pd.Categorical(['x' * 100_000] * 200))",
]  # fmt: skip


@pytest.mark.slow
def test_odd_values_have_a_card_a_row_and_a_view(healkit: Healkit) -> None:
    choice = f"[{', '.join(f'lambda: {code}' for code in ODD)}][n]()"
    imports = "import numpy as np, pandas as pd"
    healkit.vault.add("odd", f"{imports}\ndef odd(n, x=None):\n    return x if x is not None else {choice}\n")
    for n, code in enumerate(ODD):
        execution = healkit.execute("odd", arguments={"n": n})
        assert execution.failure is None, (code, execution.failure)
        assert len(execution.to_html()) < 1_000_000
        again = healkit.execute("odd", arguments={"n": n, "x": execution.value})
        assert again.to_markdown()
        assert len(healkit.log.get(again.log_id).arguments) < 1_000_000
        assert values.kept(again.value) == values.kept(execution.value), code


def test_each_of_the_contents_is_referred_to_once() -> None:
    twice = [{"@": ["ndarray", "|u1", [8], 0]}] * 2
    with pytest.raises(values.BadValue, match="two references"):
        values.restored_value(twice, [bytes(8)])


def test_what_items_share_is_counted_for_each() -> None:
    """B15: a megabyte of text that a million codes refer to would be a terabyte for whoever writes them out."""
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), pa.array(["x" * 1_000_000]))
    contents: values.Buffers = []
    encoded, _ = values.encode(pa.table({"a": codes}), contents)
    with pytest.raises(values.BadValue, match="more than 100,000,000 bytes"):
        values.decode(encoded, contents, limit_bytes=100_000_000)
    assert values.decode(encoded, contents, limit_bytes=LIMIT).num_rows == 1000
    with pytest.raises(values.TooLarge, match="more than 100,000,000 bytes"):
        values.encode(pa.table({"a": codes}), [], limit_bytes=100_000_000)

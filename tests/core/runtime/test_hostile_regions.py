"""Memory that host and worker share, in a hostile worker."""

from __future__ import annotations

import os

import numpy as np
import pytest
from waiting import wait_until

from healkit import Healkit

pytestmark = [pytest.mark.requirement("DATA-4"), pytest.mark.slow]

ENDPOINT = """
import gc, mmap, os, time
import msgspec
from healkit.core.contracts import rpc
def endpoint():
    return next(one for one in gc.get_objects() if type(one).__name__ == "Endpoint")
def region():
    return endpoint().regions[-1]
def claim(value, contents):
    endpoint().send(rpc.ExecutionComplete(value=msgspec.Raw(value), contents=contents, shown=False))
    time.sleep(60)
ARRAY = b'{"@":["ndarray","<f8",[4],0]}'
def tool(df=None):
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kept = mmap.mmap(region(), 4096)\n    claim(ARRAY, [(0, 32)])", "could still be changed"),
        ("claim(ARRAY, [(2**40, 32)])", "not where it says"),
        ("claim(ARRAY, [(0, 2**62)])", "not where it says"),
        ("claim(ARRAY, [(0, 32), (16, 32)])", "not where it says"),
        ("claim(ARRAY, [(0, 31)])", "31 bytes for an array"),
        ("claim(ARRAY, [])", "contents that are not there"),
        ("claim(ARRAY.replace(b'[4]', b'[4611686018427387904,4]'), [(0, 32)])", "wrong shape"),
        ("claim(ARRAY.replace(b'<f8', b'|O'), [(0, 32)])", "objects as bytes"),
        ("claim(b'[' * 500, [(0, 32)])", "levels of nesting"),
        ("claim(b'1', [(0, 0)] * 200_000)", "more than 400,000 elements"),
    ],
)
def test_a_claim_about_a_result_that_cannot_be_believed_is_a_failure_of_the_worker(
    healkit: Healkit, body: str, said: str
) -> None:
    healkit.vault.add("tool", f"{ENDPOINT}    {body}\n")
    failure = healkit.execute("tool").failure
    assert (failure.code, said in failure.evalue) == ("TOOL_PROTOCOL", True), failure.evalue


def test_what_the_host_has_read_does_not_change_any_more(healkit: Healkit) -> None:
    """After the host has sealed the region, the kernel refuses a mapping and a write."""
    body = (
        "os.pwrite(region(), b'\\0' * 32, 0)\n    endpoint().send(rpc.ExecutionComplete(value=msgspec.Raw(ARRAY), "
        "contents=[(0, 32)], shown=False))\n    while True:\n        os.pwrite(region(), b'\\xff' * 32, 0)"
    )
    healkit.vault.add("tool", ENDPOINT + "    " + body + "\n")
    value = healkit.execute("tool").value
    before = value.tobytes()
    assert value.shape == (4,)
    assert value.tobytes() == before


def test_the_arguments_of_the_host_cannot_be_written(healkit: Healkit) -> None:
    body = (
        "names = [os.readlink(f'/proc/self/fd/{fd}') for fd in range(3, 64) if os.path.islink(f'/proc/self/fd/{fd}')]\n"
        "    df[0] = 7.0\n    return sum('healkit-data' in name for name in names), df.sum()"
    )
    healkit.vault.add("tool", ENDPOINT + "    " + body + "\n")
    given = np.ones(100_000)
    execution = healkit.execute("tool", arguments={"df": given})
    assert execution.ok, execution.failure
    assert execution.value == (1, 100_006)  # the one descriptor is the result's
    assert type(execution.value[1]) is np.float64
    assert given.sum() == 100_000


def test_a_result_may_be_larger_than_a_file_of_the_tool(healkit: Healkit) -> None:
    code = "import numpy as np\ndef large():\n    return np.arange(40_000_000), np.ones(5, 'i1')\n"
    healkit.vault.add("large", code, grants={"memory_mb": 2048})
    assert healkit.config.scratch_mb * 2**20 < 40_000_000 * 8
    value = healkit.execute_tool("large")
    assert (value[0][[0, 33_000_000, -1]] == [0, 33_000_000, 39_999_999]).all()
    assert value[1].tolist() == [1] * 5


def test_regions_are_closed_with_their_workers(healkit: Healkit) -> None:
    healkit.vault.add("size", "def size(df):\n    return df\n")
    healkit.execute("size", arguments={"df": np.ones(10)})
    before = len(os.listdir("/proc/self/fd"))
    kept = [healkit.execute("size", arguments={"df": np.ones(100_000)}).value for _ in range(8)]
    assert sum(map(len, kept)) == 800_000
    # The last worker is closed in the background.
    wait_until(lambda: len(os.listdir("/proc/self/fd")) < before + 8)

"""healkit in a process that a container's policy restricts."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pod
import pytest

pytestmark = [
    pytest.mark.slow,  # each starts processes
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make a pod"),
]
PAGE = Path(__file__).parents[3] / "docs" / "jupyterhub.md"
NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
#: Runs in the pod: a plain tool, one on a frame that crosses through shared memory, and one that breaks out if it can.
WORK = """
import json
import pandas as pd
from healkit import Healkit
if __name__ == "__main__":
    with Healkit() as hk:
        hk.vault.add("double", "def double(x):\\n    return 2 * x")
        hk.vault.add("rows", "def rows(frame):\\n    return len(frame)")
        hk.vault.add("peeks", "def peeks():\\n    return open('/etc/shadow').read()")
        frame = pd.DataFrame({"a": range(200_000), "b": ["x" * 20] * 200_000})
        ran = [hk.execute("double", arguments={"x": 21}), hk.execute("rows", arguments={"frame": frame}),
               hk.execute("peeks")]
        print(json.dumps([[one.value, one.isolation, one.failure and one.failure.ename] for one in ran]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a short folder that every user can write."""
    with tempfile.TemporaryDirectory(prefix="pod-", dir="/tmp") as made:
        path = Path(made)
        path.chmod(0o777)
        yield path


def ran_in(folder: Path, *words: str, **policy: Any) -> Any:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "HEALKIT_DB": str(folder / "healkit.db"),
    }
    command = [sys.executable, "-P", *words]
    return pod.run(pod.Pod([str(folder)], **policy), command, env)


def doctor(folder: Path, **policy: Any) -> dict[str, Any]:
    done = ran_in(folder, "-m", "healkit", "doctor", "--json", **policy)
    assert done.stdout, done
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def wrong(report: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["fix"] for check in report["checks"] if not check["ok"]}


@pytest.mark.requirement("SCALE-6")
@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"user": 0},
        {"shm_kb": 64},
        {"shm_kb": 0},
        # A user of its own: NPROC counts the processes of a user, in other pods too.
        {"user": 1001, "limits": {"NPROC": 40, "NOFILE": 64}},
    ],
    ids=["default", "root", "small shm", "no shm", "limits"],
)
def test_a_pod_without_user_namespaces_runs_tools_at_tier_landlock(
    folder: Path, policy: dict[str, Any]
) -> None:
    done = ran_in(folder, "-c", WORK, **policy)
    assert done.returncode == 0, done
    double, rows, peeks = json.loads(done.stdout.splitlines()[-1])
    assert (double[:2], rows[:2]) == ([42, "landlock"], [200_000, "landlock"])
    assert peeks == [None, "landlock", "PermissionError"]


@pytest.mark.skipif(not NUMBERS.exists(), reason="the kernel's headers are not installed")
def test_the_calls_that_the_page_lists_are_enough(folder: Path) -> None:
    (profile,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = json.loads(profile)["syscalls"][0]["names"]
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text()))
    allowed = [int(numbers[name]) for name in names]
    done = ran_in(folder, "-c", WORK, allowed=allowed)
    assert done.returncode == 0, done
    assert [one[:2] for one in json.loads(done.stdout.splitlines()[-1])[:2]] == [
        [42, "landlock"],
        [200_000, "landlock"],
    ]
    assert [*wrong(doctor(folder, allowed=allowed))] == ["tier: namespaces"]
    for needed in ("landlock_restrict_self", "seccomp", "memfd_create", "pidfd_open"):
        fewer = [number for number in allowed if number != int(numbers[needed])]
        assert '[200000, "landlock"' not in ran_in(folder, "-c", WORK, allowed=fewer).stdout, needed


@pytest.mark.parametrize("call", ["landlock_create_ruleset", "seccomp", "memfd_create", "pidfd_open"])
def test_doctor_names_the_call_that_the_profile_denies(folder: Path, call: str) -> None:
    report = doctor(folder, denied=[call])
    ((name, fix),) = [(name, fix) for name, fix in wrong(report).items() if name.startswith("system call")]
    assert call in name
    assert fix.startswith("allow ")
    (check,) = [check for check in report["checks"] if check["name"] == name]
    assert check["detail"].endswith("the container's seccomp profile denies it")
    assert report["tier"] == ("" if call in {"landlock_create_ruleset", "seccomp"} else "landlock")


def test_a_lower_limit_of_the_pod_stays_and_doctor_names_a_missing_folder(folder: Path) -> None:
    report = doctor(folder, limits={"FSIZE": 1_000_000, "NOFILE": 100})
    assert (report["tier"], [*wrong(report)]) == ("landlock", ["tier: namespaces"])
    (layer,) = [check for check in report["checks"] if check["name"] == "layer: rlimits"]
    assert layer["detail"] == "files 100, file size 1,000,000 bytes"
    fine = doctor(folder)
    assert (fine["tier"], [*wrong(fine)]) == ("landlock", ["tier: namespaces"])
    assert "container's profile" in wrong(fine)["tier: namespaces"]
    shut = folder / "shut"
    shut.mkdir()
    done = ran_in(shut, "-m", "healkit", "doctor", user=1000)
    assert done.returncode == 2
    assert "TMPDIR" in done.stderr

"""Limits of what a tool's code writes to the host's disk."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import WITHIN_S, wait_until

from healkit import Config, Healkit
from healkit.core.workers.sandbox import RunFolder, Sandbox
from healkit.core.workers.tiers import until_over
from healkit.parts.trials.trials import Trial

#: Three files of six MiB, where eight MiB are allowed.
_FILL = "for name in 'abc':\n        open(name, 'wb').write(bytes(6 << 20))\n"


def small(tier: str) -> Config:
    """Settings with a small scratch folder."""
    return Config(isolation=tier, scratch_mb=8, start_timeout_s=60, timeout_s=60)


@pytest.mark.slow
@pytest.mark.requirement("SAFE-3")
def test_a_trial_is_ended_when_it_has_written_more_than_it_may(tmp_path: Path) -> None:
    """S3: nothing counted what a trial wrote at the landlock tier."""
    full = Trial(f"import time\ndef f():\n    {_FILL}    time.sleep(50)\n", {}, "f")
    with Healkit(tmp_path / "x.db", config=small("landlock")) as healkit:
        results = healkit.trials([full, Trial("def f():\n    return 1\n", {}, "f")], parallel=1)
    assert results[0].failure.code == "TOOL_DISK_LIMIT"
    assert results[1].value == 1


@pytest.mark.slow
@pytest.mark.requirement("SAFE-3")
def test_a_retained_worker_is_ended_when_it_goes_on_writing(tmp_path: Path) -> None:
    """S3: once a run had failed, nothing counted what its threads went on to write."""
    code = (
        "import threading, time\n"
        "def write(failed):\n    failed.wait()\n    time.sleep(0.5)\n"
        f"    {_FILL}    time.sleep(600)\n"
        "def tool():\n    failed = threading.Event()\n"
        "    threading.Thread(target=write, args=(failed,), daemon=True).start()\n"
        "    failed.set()\n    raise ValueError('stays')\n"
    )
    with Healkit(tmp_path / "x.db", config=small("landlock")) as healkit:
        healkit.vault.add("tool", code)
        asked = healkit.execute("tool").post_mortem()
        file = asked.attach()
        wait_until(lambda: not Path(file).exists())


@pytest.mark.slow
@pytest.mark.requirement("SAFE-3")
@pytest.mark.parametrize("tier", ["namespaces", "landlock", "process"])
def test_a_lower_limit_of_the_user_stays_in_force(tmp_path: Path, tier: str) -> None:
    """A worker did not start where `ulimit -f` was below the scratch folder's size."""
    host = (
        "import resource, sys\nfrom healkit import Config, Healkit\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, 6 << 20))\n"
        "with Healkit('x.db', config=Config(isolation=sys.argv[1])) as healkit:\n"
        "    healkit.vault.add('limit', 'import resource\\ndef limit():\\n'\n"
        "        '    return resource.getrlimit(resource.RLIMIT_FSIZE)[1]\\n')\n"
        "    print(healkit.execute('limit').value)\n"
    )
    command = [sys.executable, "-c", host, tier]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S)
    assert (done.stdout, done.returncode) == (f"{6 << 20}\n", 0), done.stderr


@pytest.mark.requirement("SAFE-3")
def test_a_look_that_was_begun_in_one_trial_does_not_end_the_next(tmp_path: Path) -> None:
    """S3: the next trial ended with TOOL_DISK_LIMIT for what the one before it had written."""
    sandbox = Sandbox("landlock", RunFolder(tmp_path / "run").create(), scratch_mb=8)
    (sandbox.folder.scratch / "file").write_bytes(bytes(12 << 20))
    under_way, asked = iter([1, 2, None, 2, 2]), []

    def work() -> int | None:
        asked.append(next(under_way))
        return asked[-1]

    asyncio.run(until_over(sandbox, {}, os.getpid(), work))
    assert asked == [1, 2, None, 2, 2]

"""Writing of a run under trouble.

The disk refuses, folders vanish and processes die.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_samples import begin, checked, tell

from healkit.errors import RunFolderError
from healkit.tracing.reader import in_order, validate_run
from healkit.tracing.run_folders import is_being_written


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 256 KiB; that takes root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny disk takes root; run the tests as root to include this one")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.requirement("RUN-2", "RUN-7")
def test_lines_that_waited_for_a_full_disk_are_written_in_order(
    small_disk: Path,
) -> None:
    writer = begin(small_disk)
    tell(writer)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 1024)
        except OSError:
            pass
    for _ in range(3):  # the page that the trace's last line is in may have room for some more
        tell(writer)
    assert "No space left on device" in writer.problem
    assert "events could not be written" in writer.problem
    assert validate_run(writer.folder).events[-1].seq < 14
    assert in_order(validate_run(writer.folder))
    filler.unlink()
    tell(writer)
    writer.finish({})
    assert "events" not in writer.problem
    assert "evidence could not be kept" in writer.problem  # it is not kept in memory, and that is said
    run = checked(writer.folder)
    assert [event.seq for event in run.events] == list(range(1, 18))
    assert any(event.metadata.get("not_kept") for event in run.events)


def test_a_full_disk_refuses_a_new_run(small_disk: Path) -> None:
    try:
        (small_disk / "filler").write_bytes(b"x" * (1 << 20))
    except OSError:
        pass
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RunFolderError, match="No space left on device"):
        begin(small_disk / "runs")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert list((small_disk / "runs").glob("*/*")) == []


@pytest.mark.requirement("RUN-2")
def test_a_file_size_limit_ends_only_the_record(tmp_path: Path) -> None:
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\n"
        "from run_samples import begin, tell\nwriter = begin(Path(sys.argv[2]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\ntell(writer, 20)\nwriter.finish({})\n"
        "print(writer.problem)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "File too large" in done.stdout
    run = validate_run(tmp_path / "a")
    assert in_order(run)
    assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
    assert (tmp_path / "a" / "trace.jsonl").stat().st_size <= 5000


@pytest.mark.requirement("RUN-2")
def test_a_removed_folder_is_a_problem_and_no_error(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    tell(writer)
    subprocess.run(["rm", "-r", str(writer.folder)], check=True)
    tell(writer)
    writer.finish({})
    assert "its folder was removed while the run went on" in writer.problem
    assert not writer.folder.exists()


def test_a_forked_child_does_not_write_to_its_parents_run(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    before = (writer.folder / "trace.jsonl").read_bytes()
    child = os.fork()
    if child == 0:
        tell(writer)
        writer.finish({})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (writer.folder / "trace.jsonl").read_bytes() == before
    assert is_being_written(writer.folder)
    tell(writer)
    writer.finish({})
    checked(writer.folder)


def test_unfinished_folders_of_dead_processes_are_swept_after_an_hour(tmp_path: Path) -> None:
    begin(tmp_path, "first").finish({})
    unborn = tmp_path / ".new" / "second-xyz"
    unborn.mkdir()
    begin(tmp_path, "third").finish({})
    assert unborn.exists()
    os.utime(unborn, (0, 0))
    begin(tmp_path, "fourth").finish({})
    assert not unborn.exists()


KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from run_samples import begin, tell
random.seed(int(sys.argv[3]))
for number in range(50):
    child = os.fork()
    if child == 0:
        # A forked child owns what it begins; it is killed in the middle of whatever it is at.
        n = 0
        while True:
            writer = begin(Path(sys.argv[2]), f"r{number}-{n}")
            tell(writer, random.randrange(60), n)
            writer.finish({})
            n += 1
    give_up = time.monotonic() + 20
    while not Path(sys.argv[2], f"r{number}-0").exists() and time.monotonic() < give_up:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.requirement("RUN-2", "RUN-7")
def test_runs_stay_readable_after_a_hundred_kills(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    hosts = [subprocess.Popen([*command[:-1], str(tmp_path / seed), seed]) for seed in "12"]
    for host in hosts:
        assert host.wait(timeout=100) == 0
    folders = [path for seed in "12" for path in (tmp_path / seed).iterdir() if path.name != ".new"]
    unfinished = 0
    for folder in folders:
        run = validate_run(folder)
        faults = {problem.kind for problem in run.problems if problem.fault}
        assert faults <= {"torn_line"}, [str(problem) for problem in run.problems]
        assert run.manifest is not None
        assert run.events[0].event_type == "run_started"
        assert [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
        unfinished += not run.finished
    assert len(folders) >= 100
    assert 40 <= unfinished <= 100


def test_a_signal_does_not_damage_a_run(tmp_path: Path) -> None:
    """Python restarts an interrupted write; a handler that returns must not tear a line."""
    writer = begin(tmp_path)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        tell(writer, 30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    writer.finish({})
    checked(writer.folder)

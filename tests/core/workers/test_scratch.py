"""Files that a worker wrote: counted and removed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from programs import python

from healkit.core.workers.inside.cleanup import empty_folder, remove_tree
from healkit.core.workers.sandbox import RunFolder, RunFolders, passing_folder, sweep
from healkit.core.workers.tiers import exceeds

MANY = 10_000


def nested(folder: Path, depth: int, name: str, size_bytes: int = 0) -> None:
    """Make folders within folders, with a file in the last one; their path may be as long as it likes."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(file, bytes(size_bytes))
    os.close(file)
    os.close(here)


SHAPES = {"many levels": (1_500, "d"), "a path that is too long": (20, "d" * 250)}


@pytest.mark.requirement("SAFE-3")
@pytest.mark.parametrize("shape", SHAPES)
def test_deep_folders_are_counted_removed_and_swept(shape: str, tmp_path: Path) -> None:
    """S3, S4: what lay deep was not counted, ended the cleanup with a RecursionError, and every later start with it."""
    folder, left = RunFolder(tmp_path / "run").create(), tmp_path / "999999999-1-1"
    left.mkdir()
    nested(folder.scratch, *SHAPES[shape], size_bytes=30_000_000)
    nested(left, *SHAPES[shape])
    scratch, depth = str(folder.scratch), SHAPES[shape][0]
    assert exceeds(scratch, os.getpid(), 29_000_000, MANY)
    assert not exceeds(scratch, os.getpid(), 60_000_000, MANY)
    assert exceeds(scratch, os.getpid(), 60_000_000, depth - 1)
    folder.remove()
    RunFolders(tmp_path).close()  # as the next host does
    assert list(tmp_path.iterdir()) == []
    assert sweep(tmp_path / "nothing") == 0


#: Ends as by a kill in the middle of the probe of a tier, and says in which folder.
KILLED = """
import os, signal
from healkit.core.workers.sandbox import passing_folder
with passing_folder() as folder:
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.requirement("SAFE-3")
def test_a_host_that_is_killed_in_its_probe_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """Each host that was killed within its first tenth of a second left a folder for ever."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = python(KILLED, env=environment)
    left = Path(killed.stdout.strip())
    assert left.is_dir(), killed
    assert sweep(left.parent) == 1
    assert not left.exists()


@pytest.mark.requirement("SAFE-3")
def test_a_folder_that_is_still_used_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with passing_folder() as folder:
        renamed = folder.rename(folder.with_name("999999999-1-x"))  # no process of its own container
        assert sweep(folder.parent) == 0
        assert renamed.is_dir()
        renamed.rename(folder)
    assert not folder.exists()


@pytest.mark.requirement("SAFE-3")
def test_emptying_a_folder_keeps_it_and_follows_no_link(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "kept").touch()
    folder.mkdir()
    nested(folder, 3, "d")
    (folder / "link").symlink_to(outside)
    (folder / "d" / "link").symlink_to(outside / "kept")
    assert empty_folder(str(folder))
    assert list(folder.iterdir()) == []
    assert (outside / "kept").exists()
    (tmp_path / "linked").symlink_to(outside)
    assert not remove_tree(tmp_path / "linked")
    assert (outside / "kept").exists()


@pytest.mark.requirement("SAFE-3")
def test_one_file_with_several_names_takes_its_room_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1_000_000))
    for number in range(10):
        os.link(tmp_path / "file", tmp_path / str(number))
    assert not exceeds(str(tmp_path), os.getpid(), 2_000_000, MANY)
    assert exceeds(str(tmp_path), os.getpid(), 2_000_000, 10)


#: Runs as an ordinary user, for whom a folder can be shut.
_SHUT = """
import json, os, sys
from healkit.core.workers.tiers import exceeds
from healkit.core.workers.inside.cleanup import remove_tree

os.fchdir(int(sys.argv[1]))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
found = []
open("outside", "w").close()
os.chmod("outside", 0o640)
for mode in (0o000, 0o300, 0o500, 0o600):
    top = "top"
    os.makedirs(top + "/shut/below/further")
    open(top + "/shut/below/file", "w").close()
    os.symlink(os.path.abspath("outside"), top + "/shut/below/link")
    os.chmod(top + "/shut/below", mode)
    os.chmod(top + "/shut", mode)
    counted = exceeds(top, os.getpid(), 10**9, 10**6)
    removed = remove_tree(top)
    found.append([oct(mode), counted, removed, os.stat("outside").st_mode & 0o777 != 0o640])
print(json.dumps(found))
"""


@pytest.mark.requirement("SAFE-3", "WORK-2")
def test_an_unlistable_folder_counts_as_too_much_and_is_removed(tmp_path: Path) -> None:
    """S3: a folder that a tool had made unreadable was taken for an empty one, and stayed after the run."""
    tmp_path.chmod(0o777)
    here = os.open(tmp_path, os.O_RDONLY)  # an ordinary user cannot pass through the folders above
    done = python(_SHUT, here, pass_fds=(here,))
    os.close(here)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [  # mode, counted as too much, removed, and no link was followed
        ["0o0", True, True, False],
        ["0o300", True, True, False],
        ["0o500", False, True, False],
        ["0o600", True, True, False],
    ]

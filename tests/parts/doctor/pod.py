"""Program that makes itself a pod, and starts a command.

As root, in namespaces of its own: the file system can only be read but for the folders that are named, `/dev/shm` is what
is asked for, the user is an ordinary one without capabilities, new privileges cannot be gained, and a seccomp filter
denies what the default profile of container runtimes denies, and what is asked for beyond.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import healkit
from healkit.core.workers.inside import seccomp

_NEWNS, _NEW_ANY = 0x00020000, 0x7E020080
#: Calls that the default profile of Docker and containerd denies to a container without capabilities, in `seccomp`'s
#: form; more are unknown to it, but nothing here calls those.
DEFAULT_PROFILE: dict[str, tuple[int | None, int | None]] = {
    name: seccomp.DENIED[name]
    for name in (
        *(
            "unshare",
            "setns",
            "mount",
            "umount2",
            "pivot_root",
            "move_mount",
            "open_tree",
            "fsopen",
            "fsmount",
        ),
        *(
            "add_key",
            "request_key",
            "keyctl",
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "kexec_load",
            "init_module",
        ),
        *("finit_module", "delete_module", "acct", "reboot", "swapon", "swapoff", "syslog", "settimeofday"),
        *("io_uring_setup", "io_uring_enter", "io_uring_register", "quotactl", "personality"),
    )
}
LANDLOCK: dict[str, tuple[int | None, int | None]] = {"landlock_create_ruleset": (444, 444)}
SECCOMP: dict[str, tuple[int | None, int | None]] = {"seccomp": (317, 277)}
PIDFD: dict[str, tuple[int | None, int | None]] = {"pidfd_open": (434, 434), "pidfd_send_signal": (424, 424)}
MEMFD: dict[str, tuple[int | None, int | None]] = {"memfd_create": (319, 279)}


@dataclass
class Pod:
    """What a pod takes away.

    writable: folders that can be written. shm_kb: size of `/dev/shm`, 0 where it cannot be written. denied: calls beyond
    `DEFAULT_PROFILE`; allowed: in place of both, the numbers of the only calls that are. limits: name of the limit → most.
    """

    writable: list[str]
    shm_kb: int = 64 * 1024
    user: int = 1000
    denied: list[str] | None = None
    allowed: list[int] | None = None
    limits: dict[str, int] | None = None


def run(
    pod: Pod, command: list[str], env: dict[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command in a pod."""
    words = [sys.executable, __file__, json.dumps(asdict(pod)), *command]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout_s, check=False)


def enter(pod: Pod) -> None:
    """Become the first process of the pod."""
    import resource

    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
        texts = [text.encode() if text is not None else None for text in (source, target, kind)]
        if libc.mount(*texts, flags, data.encode() if data else None) != 0:
            raise OSError(ctypes.get_errno(), f"mount {target}")

    bind, rec, private, remount, read_only, nosuid = 4096, 16384, 1 << 18, 32, 1, 2
    if libc.unshare(_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", None, rec | private)
    for folder in pod.writable:
        mount(folder, folder, None, bind)
    opened(mount, Path(pod.writable[0]) / ".seen")
    mount("none", "/", None, bind | remount | read_only | nosuid)
    size = f"size={pod.shm_kb}k,mode=1777" if pod.shm_kb else "size=4k,mode=0555"
    mount("tmpfs", "/dev/shm", "tmpfs", nosuid | (0 if pod.shm_kb else read_only), size)
    for name, most in (pod.limits or {}).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    for capability in range(64):
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    os.setgroups([])
    os.setresgid(pod.user, pod.user, pod.user)
    os.setresuid(pod.user, pod.user, pod.user)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    seccomp.load_filter(_filter(pod))


def opened(mount: Any, stash: Path) -> None:
    """Let an ordinary user reach the interpreter and healkit where they lie in a folder that is root's alone."""
    needed = {
        Path(sys.base_prefix).resolve(),
        Path(sys.prefix).resolve(),
        Path(healkit.__file__).resolve().parents[1],
    }
    shut = {
        next(folder for folder in reversed(path.parents) if not folder.stat().st_mode & 1)
        for path in needed
        if not all(folder.stat().st_mode & 1 for folder in path.parents)
    }
    kept = [(path, stash / str(number)) for number, path in enumerate(sorted(needed))]
    for path, aside in kept:
        aside.mkdir(parents=True, exist_ok=True)
        mount(str(path), str(aside), None, 4096)
    for folder in shut:
        mount("tmpfs", str(folder), "tmpfs", 0, "size=64k,mode=0755")
    for path, aside in kept:
        if shut & {*path.parents}:
            path.mkdir(parents=True, exist_ok=True)
            mount(str(aside), str(path), None, 4096)


def _filter(pod: Pod) -> bytes:
    program = seccomp._Program.checked_for(None)
    if pod.allowed is not None:
        for number in pod.allowed:
            program.emit(0x15, number, 0, 1)
            program.emit(0x06, 0x7FFF0000)
        program.deny(seccomp.ABSENT["clone3"], errno.ENOSYS)
        program.refuse(errno.EPERM)
        return program.code
    extra: dict[str, Any] = LANDLOCK | SECCOMP | PIDFD | MEMFD
    for numbers in (*DEFAULT_PROFILE.values(), *(extra[name] for name in pod.denied or ())):
        program.deny(numbers, errno.EPERM)
    program.deny(
        seccomp.ABSENT["clone3"], errno.ENOSYS
    )  # its flags lie in memory, where a filter cannot look
    program.check((56, 220), [(0x20, 16, 0, 0), (0x45, _NEW_ANY, 0, 1)], errno.EPERM)
    program.emit(0x06, 0x7FFF0000)
    return program.code


if __name__ == "__main__":
    enter(Pod(**json.loads(sys.argv[1])))
    os.execvp(sys.argv[2], sys.argv[2:])

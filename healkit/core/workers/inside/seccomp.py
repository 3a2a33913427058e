"""Seccomp filter, as a BPF program for the kernel.

It is written here because no maintained library fits: `pyseccomp` needs libseccomp on the host and was last released in
2021. The program is a flat list of checks in the order of the tables below; whatever passes all checks is allowed. The
kernel caches the verdict of every system call that the program decides by number alone, so the length has no cost.

Numbers: Linux `asm/unistd_64.h` (x86_64) and `asm-generic/unistd.h` (aarch64). Format: seccomp(2), linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import re
import struct

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH = 0, 4
#: System call that loads a filter, and its arguments: `SECCOMP_SET_MODE_FILTER`, on every thread at once.
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _TSYNC = 1, 1

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_THREAD = 0x00010000
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_MM = 1, 4, 35
#: Options of prctl that let a process outlive its parent, hide its open files from its user, or change its
#: memory map.
_PRCTL_DENIED = (_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_MM)
_SET_ID_BITS = 0o6000
_FALLOC_KEEP_SIZE = 1
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
#: Commands of fcntl that make the kernel send signals, delay other processes, or hold more memory: F_SETOWN,
#: F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ; and the answer.
_FCNTL_DENIED = dict.fromkeys((8, 15, 1024, 1026, 1031), errno.EPERM)
#: Locks of a byte range (F_SETLK, F_SETLKW; F_OFD_SETLK, F_OFD_SETLKW). The kernel holds 192 bytes for each,
#: without a limit. Locks of one process never exclude each other, so success can be pretended if no other
#: process has the file.
_FCNTL_LOCKS = {6: 0, 7: 0, 37: errno.EINVAL, 38: errno.EINVAL}
#: Socket options that make the kernel hold more memory: SO_SNDBUF, SO_RCVBUF, and both with force.
_SOL_SOCKET, _SOCKET_BUFFERS = 1, (7, 8, 32, 33)
_OWNER_BITS = 0o700
#: Allowed ioctls: whether it is a terminal (TCGETS, TCGETS2), its width (TIOCGWINSZ), how much there is to
#: read (FIONREAD). FIONBIO, FIOCLEX and FIONCLEX do the same as fcntl; FICLONE copies to a file that is open
#: for writing.
_IOCTL_ALLOWED = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5451, 0x5450, 0x40049409)
#: First system call that is newer than this table; to a worker, these calls do not exist.
_FIRST_UNKNOWN = 463

# Four tables of denied system calls, by the answer that the caller gets:
#   DENIED        not permitted (EPERM; EACCES for the network)
#   ABSENT        the kernel does not have it (ENOSYS)
#   UNSUPPORTED   the file system does not support it (EOPNOTSUPP)
#   PRETENDED     success, although nothing was done (0)
# `_OWN_PID`, `_OPEN` and `_deny_by_argument` deny some arguments of other calls.

#: name → (x86_64, aarch64); None if the architecture has no such call.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # new processes and programs
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "setpriority": (141, 140), "ioprio_set": (251, 30), "get_robust_list": (274, 100),
    "sched_setattr": (314, 274),
    # the network, and sockets of every family
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    # messages that can carry descriptors: a file in transit is not open anywhere, and no limit counts it
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsmount": (432, 432), "fsconfig": (431, 431), "fspick": (433, 433), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458),
    # keys, System V and POSIX message queues, shared memory and semaphores
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    # calls with a large attack surface
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "query_module": (178, None),
    "get_kernel_syms": (177, None), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, None),
    "_sysctl": (156, None), "sysfs": (139, None), "ustat": (136, None), "modify_ldt": (154, None),
    "personality": (135, 92), "memfd_secret": (447, 447), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "mknod": (133, None), "mknodat": (259, 33),
    # files by path or through a read-only descriptor: Landlock does not check these (truncate: before its
    # third ABI)
    "truncate": (76, 45), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    # the machine
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "vhangup": (153, 58), "ioperm": (173, None),
    "iopl": (172, None), "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip

#: Refused as if the kernel did not know them. In place of clone3 and openat2, libc then uses an older call,
#: whose arguments this filter can check. The memory of memfd_create does not count against the worker's
#: memory limit. The limits of inotify and of asynchronous input and output apply to all processes of the
#: user, or of the machine, together, so a worker could use them up.
ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435), "openat2": (437, 437), "memfd_create": (319, 279), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "io_setup": (206, 0),
}  # fmt: skip

#: Refused as if the file system did not support it, which copy programs accept.
UNSUPPORTED: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip

#: Not done, but reported as done. A mode or a time can be set on any file that the user owns, by path or
#: through a read-only descriptor, and Landlock does not check it. But programs that copy files set both and
#: expect no error.
PRETENDED: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    # libzmq's threads call it when they first run, sometimes only after the filter is loaded, and abort on an
    # error
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
}  # fmt: skip

#: Refused unless one argument is the worker's own process id (or 0, "myself", if `zero` is true).
_OWN_PID = {"kill": ((62, 129), False), "tgkill": ((234, 131), False), "prlimit64": ((302, 261), True),
            "sched_setaffinity": ((203, 122), True)}  # fmt: skip

#: Refused with a set-user-id or set-group-id bit in the mode. Also refused with O_TRUNC on a file that is
#: opened read-only: that empties the file, and Landlock before its third ABI allows it as reading. The number
#: is the position of the flags among the arguments; the mode is the next argument.
_OPEN = {"open": ((2, None), 1), "openat": ((257, 56), 2)}

#: Refused with a mode that removes a right of the owner. The number is the position of the mode.
_MKDIR = {"mkdir": ((83, None), 1), "mkdirat": ((258, 34), 2)}

_NETWORK = {"socket", "connect", "bind", "listen"}
_FORKS = ("fork", "vfork")

Numbers = tuple[int | None, int | None]


class _Program:
    """Instructions so far; each check leaves the system call's number in the accumulator."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.code = b""

    @classmethod
    def checked_for(cls, machine: str | None) -> _Program:
        """Start a program with the check of the architecture; raise `OSError` for an unknown one."""
        machine = machine or platform.machine()
        if machine not in _AUDIT_ARCH:
            raise OSError(errno.ENOTSUP, f"no seccomp filter for the architecture {machine!r}")
        program = cls(0 if machine == "x86_64" else 1)
        program.emit(_LOAD, _ARCH)
        program.emit(_JUMP_EQ, _AUDIT_ARCH[machine], 1, 0)
        program.emit(_RETURN, _KILL)
        program.emit(_LOAD, _NR)
        return program

    def emit(self, op: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.code += struct.pack("<HBBI", op, if_true, if_false, value)

    def refuse(self, error: int) -> None:
        self.emit(_RETURN, _ERRNO | error)

    def deny(self, numbers: Numbers, error: int) -> None:
        if (number := numbers[self.column]) is not None:
            self.emit(_JUMP_EQ, number, 0, 1)
            self.refuse(error)

    def check(self, numbers: Numbers, body: list[tuple[int, int, int, int]], error: int) -> None:
        """Add a check of one call's arguments.

        body: Instructions that only run for that call. The last one jumps: over 0 instructions to refuse the call, over
            1 to allow it.
        """
        if (number := numbers[self.column]) is not None:
            self.emit(_JUMP_EQ, number, 0, len(body) + 2)
            for instruction in body:
                self.emit(*instruction)
            self.refuse(error)
            self.emit(_RETURN, _ALLOW)

    def answer(self, numbers: Numbers, index: int, answers: dict[int, int]) -> None:
        """Add a check of one argument: value → the error for the caller, 0 for a pretended success."""
        if (number := numbers[self.column]) is not None:
            self.emit(_JUMP_EQ, number, 0, 2 * len(answers) + 2)
            self.emit(*_low_word(index))
            for value, error in answers.items():
                self.emit(_JUMP_EQ, value, 0, 1)
                self.refuse(error)
            self.emit(_RETURN, _ALLOW)


def build_filter(own_pid: int, machine: str | None = None, *, shares_files: bool = False) -> bytes:
    """Build this architecture's program, as the bytes of its `sock_filter`s; raise `OSError` for an unknown one.

    `shares_files`: other processes may lock the files that the worker was granted.
    """
    program = _Program.checked_for(machine)
    _deny_by_number(program, DENIED)
    _deny_by_argument(program, shares_files=shares_files)
    _deny_others(program, own_pid)
    program.emit(_RETURN, _ALLOW)
    return program.code


def filter_for(own_pid: int, *, shares_files: bool) -> bytes:
    """Return the result of `build_filter`, built once, because each child of a fork server has another process id."""
    return _filter(shares_files).replace(_PID.pack(_PLACEHOLDER_PID), _PID.pack(own_pid))


@functools.cache
def _filter(shares_files: bool) -> bytes:
    return build_filter(_PLACEHOLDER_PID, shares_files=shares_files)


def build_parent_filter(machine: str | None = None) -> bytes:
    """Build the filter for a process that has to fork: without the rules that only a child can apply."""
    program = _Program.checked_for(machine)
    _deny_by_number(program, {name: DENIED[name] for name in DENIED if name not in _FORKS})
    _deny_by_argument(program, shares_files=False)
    program.emit(_RETURN, _ALLOW)
    return program.code


def build_child_filter(own_pid: int, machine: str | None = None) -> bytes:
    """Build the part of `build_filter` that `build_parent_filter` lacks; short, since hundreds of children load it."""
    program = _Program.checked_for(machine)
    for name in _FORKS:
        program.deny(DENIED[name], errno.EPERM)
    _deny_others(program, own_pid)
    program.emit(_RETURN, _ALLOW)
    return program.code


def _deny_by_number(program: _Program, denied: dict[str, Numbers]) -> None:
    program.emit(_JUMP_GE, _FIRST_UNKNOWN, 0, 1)  # x32's numbers start far above, so they end here too
    program.refuse(errno.ENOSYS)
    for name, numbers in denied.items():
        program.deny(numbers, errno.EACCES if name in _NETWORK else errno.EPERM)
    for table, error in ((ABSENT, errno.ENOSYS), (UNSUPPORTED, errno.EOPNOTSUPP), (PRETENDED, 0)):
        for numbers in table.values():
            program.deny(numbers, error)


def _low_word(index: int) -> tuple[int, int, int, int]:
    return (_LOAD, 16 + 8 * index, 0, 0)


def _deny_others(program: _Program, own_pid: int) -> None:
    """Deny new processes, effects on other processes, and outliving the parent."""
    program.check((56, 220), [_low_word(0), (_JUMP_SET, _CLONE_THREAD, 1, 0)], errno.EPERM)
    for numbers, zero in _OWN_PID.values():
        allowed = [(_JUMP_EQ, own_pid, 2, 0), (_JUMP_EQ, 0, 1, 0)] if zero else [(_JUMP_EQ, own_pid, 1, 0)]
        program.check(numbers, [_low_word(0), *allowed], errno.EPERM)
    program.check((157, 167), [_low_word(0), *_one_of(_PRCTL_DENIED, refuse=True)], errno.EPERM)


def _deny_by_argument(program: _Program, *, shares_files: bool) -> None:
    """Deny some arguments of calls that are otherwise needed."""
    for numbers, flags in _OPEN.values():
        set_id = [_low_word(flags + 1), (_JUMP_SET, _SET_ID_BITS, 3, 0)]
        cut_off = [_low_word(flags), (_AND, _O_ACCMODE | _O_TRUNC, 0, 0), (_JUMP_EQ, _O_TRUNC, 0, 1)]
        program.check(numbers, [*set_id, *cut_off], errno.EPERM)
    program.check((85, None), [_low_word(1), (_JUMP_SET, _SET_ID_BITS, 0, 1)], errno.EPERM)  # creat
    # A stream pair is private to its holder; a datagram socket could still send to any named socket.
    stream_pair = [_low_word(0), (_JUMP_EQ, _AF_UNIX, 0, 3), _low_word(1), (_AND, _SOCK_TYPE_MASK, 0, 0)]
    program.check((53, 199), [*stream_pair, (_JUMP_EQ, _SOCK_STREAM, 1, 0)], errno.EACCES)
    program.check((16, 29), [_low_word(1), *_one_of(_IOCTL_ALLOWED, refuse=False)], errno.ENOTTY)
    program.answer((72, 25), 1, _FCNTL_DENIED if shares_files else _FCNTL_DENIED | _FCNTL_LOCKS)
    buffers = [_low_word(2), *_one_of(_SOCKET_BUFFERS, refuse=True)]
    program.check(
        (54, 208), [_low_word(1), (_JUMP_EQ, _SOL_SOCKET, 0, len(buffers) + 1), *buffers], errno.EPERM
    )
    # Space beyond a file's end does not count as its size, so the size limit does not cover it.
    program.check((285, 47), [_low_word(1), (_JUMP_SET, _FALLOC_KEEP_SIZE, 0, 1)], errno.EOPNOTSUPP)
    # A folder that its owner cannot list, enter or empty would hide its files from the host's count and
    # removal.
    for numbers, mode in _MKDIR.values():
        whole = [_low_word(mode), (_AND, _OWNER_BITS, 0, 0), (_JUMP_EQ, _OWNER_BITS, 1, 0)]
        program.check(numbers, whole, errno.EPERM)
    program.check((95, 166), [_low_word(0), (_JUMP_SET, _OWNER_BITS, 0, 1)], 0)  # umask: pretended


def _one_of(values: tuple[int, ...], *, refuse: bool) -> list[tuple[int, int, int, int]]:
    """Return the end of a check: refuse, or allow, exactly those values of the word just loaded."""
    last = len(values) - 1
    hit, miss = (0, 1) if refuse else (1, 0)
    body = [(_JUMP_EQ, value, last - index + hit, 0) for index, value in enumerate(values)]
    return [*body[:-1], (_JUMP_EQ, values[-1], hit, miss)]


class _SockFprog(ctypes.Structure):
    buffer: ctypes.Array[ctypes.c_char]
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library; looked up once, to keep forks of a trial server quick."""
    return ctypes.CDLL(None, use_errno=True)


_PID, _PLACEHOLDER_PID = struct.Struct("=I"), 0x7EADBEE5
_PLACEHOLDERS = re.compile(re.escape(_PID.pack(_PLACEHOLDER_PID)))


class ChildFilter:
    """`build_child_filter`, prepared by the parent except for the process id, so that a child only has to load it."""

    def __init__(self) -> None:
        code = build_child_filter(_PLACEHOLDER_PID)
        self._buffer = ctypes.create_string_buffer(code, len(code))
        self._places = [match.start() for match in _PLACEHOLDERS.finditer(code)]
        self._program = _program_in(self._buffer)
        self._system_call = libc()["syscall"]
        self._arguments = (
            _SECCOMP[platform.machine()],
            _SET_MODE_FILTER,
            _TSYNC,
            ctypes.addressof(self._program),
        )
        self._system_call.argtypes = (ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p)

    def load(self) -> None:
        """Apply it to this process; raise `OSError`."""
        own_pid = os.getpid()
        for place in self._places:
            _PID.pack_into(self._buffer, place, own_pid)
        if (result := self._system_call(*self._arguments)) != 0:
            raise _not_loaded(result)


def load_filter(code: bytes) -> None:
    """Apply the program to every thread of this process, permanently; raise `OSError`."""
    _load(_program_in(ctypes.create_string_buffer(code, len(code))))


def _program_in(buffer: ctypes.Array[ctypes.c_char]) -> _SockFprog:
    program = _SockFprog(len(buffer) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    program.buffer = buffer  # kept as long as the pointer to it
    return program


def _load(program: _SockFprog) -> None:
    result = libc().syscall(_SECCOMP[platform.machine()], _SET_MODE_FILTER, _TSYNC, ctypes.byref(program))
    if result != 0:
        raise _not_loaded(result)


def _not_loaded(result: int) -> OSError:
    """Return the error; a positive result is the id of a thread that could not be synchronised."""
    error = ctypes.get_errno() if result < 0 else errno.ESRCH
    return OSError(error, f"seccomp filter not loaded: {os.strerror(error)}")

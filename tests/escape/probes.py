"""The escapes that one tool tries in one go: what, how, and what must come of it at each tier.

Each probe's code defines `attempt(t)`, where `t` are the host's targets. Returning anything but "denied" means that it
was possible, an `OSError` that it was refused. Calls with senseless arguments go through `reached`: any other error
than a refusal shows that the kernel had begun to do it.
"""

from __future__ import annotations

import dataclasses

DENIED, OPEN = "denied", "ALLOWED"

_LIMITED = "the limits are in force at the process tier too"


@dataclasses.dataclass(frozen=True)
class Probe:
    """One attempt: its name says what is tried, `code` does it.

    `namespaces` and `landlock` are the answers expected there; where one is `OPEN`, `said` is the sentence of
    docs/isolation.md that admits it. `control` says why the `process` tier refuses it too, where it does: a probe that
    nobody could pass proves nothing without a reason.
    """

    name: str
    code: str
    namespaces: str = DENIED
    landlock: str = DENIED
    said: str = ""
    control: str = ""

    def expected(self, tier: str) -> str:
        """The answer that this tier must give."""
        return {"namespaces": self.namespaces, "landlock": self.landlock}[tier]


#: In front of every probe's code.
PRELUDE = r'''
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
EXPECTED = {*REFUSALS, errno.ENOENT, errno.EROFS, errno.ENOTTY, errno.EOPNOTSUPP, errno.EFBIG, errno.ENOSPC, errno.EXDEV,
            errno.ESRCH, errno.EINVAL, errno.EMFILE, errno.ENOMEM, errno.EBADF}

def syscall(t, name, *args):
    """The raw system call; raises OSError."""
    number = t["numbers"][name] if isinstance(name, str) else name
    passed = [a if isinstance(a, bytes | ctypes.Array) else ctypes.c_long(a) for a in args]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *passed)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def reached(t, name, *args):
    """"yes" when the kernel took it up, even if it then found the arguments senseless; else raises."""
    try:
        syscall(t, name, *args)
    except OSError as error:
        if error.errno in REFUSALS:
            raise
        return f"yes, {errno.errorcode[error.errno]}"
    return "yes"

def marks(path, action):
    """Whether the action left a mark on the file's inode; a success that is only pretended does not."""
    before = os.stat(path).st_ctime_ns
    time.sleep(0.02)  # the clock of inodes ticks every few milliseconds
    action()
    return "yes" if os.stat(path).st_ctime_ns != before else "denied"

def each_time(times, attempt):
    """What the attempt comes to: "yes" only if it is "yes" each time, since others may change what all processes share."""
    return "yes" if all(attempt() == "yes" for _ in range(times)) else "denied"

def reschedule(pid):
    """Whether the process has another scheduling policy afterwards; a success that is only pretended gives it none."""
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    return "yes" if os.sched_getscheduler(pid) == os.SCHED_BATCH else "denied"

def put(path, data=b"x", flags=os.O_WRONLY):
    fd = os.open(path, flags)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)

def take(path, size=64):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return len(os.read(fd, size))
    finally:
        os.close(fd)

def typed(t):
    """Whether the kernel knows the terminal's call on something that is none; the filter says the same, so look closer."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, 0x5412, b'x')
    return 'yes'

def hoard():
    held = []
    try:
        for _ in range(1000):
            held.append(os.open('.', os.O_RDONLY))
    finally:
        for fd in held:
            os.close(fd)
    return 'yes'

NEW = os.O_WRONLY | os.O_CREAT
'''


def _table(table: dict[str, str], **expected: str) -> list[Probe]:
    """Probes whose code is one expression over the targets `t`, or the lines of a function."""
    probes = []
    for name, code in table.items():
        body = code.strip("\n") if "\n" in code else f"    return {code}"
        probes.append(Probe(name, f"def attempt(t):\n{body}\n", **expected))
    return probes


_OUTSIDE = _table({
    "read a file of the host's": "take(t['secret'])",
    "list a folder of the host's": "os.listdir(t['folder'])",
    "make a file in a folder of the host's": "put(t['folder'] + '/made', b'x', NEW)",
    "make a folder in a folder of the host's": "os.mkdir(t['folder'] + '/made-folder')",
    "make a link in a folder of the host's": "os.symlink('/', t['folder'] + '/made-link')",
    "overwrite a file of the host's": "put(t['victim'])",
    "delete a file of the host's": "os.unlink(t['deletable'])",
    "rename a file of the host's": "os.rename(t['renamable'], t['renamable'] + '2')",
    "move a file of the host's into a granted folder": "os.rename(t['movable'], t['writable'] + '/moved')",
    "hard-link a file of the host's into a granted folder": "os.link(t['secret'], t['writable'] + '/hard')",
    "truncate a file of the host's by its path": "os.truncate(t['victim'], 0)",
    "truncate a file of the host's by opening it": "os.open(t['victim'], os.O_RDONLY | os.O_TRUNC)",
    "change the mode of a file of the host's": "marks(t['victim'], lambda: os.chmod(t['victim'], 0o600))",
    "change the mode of a file it may read": """
    fd = os.open(t['readable'] + '/data.txt', os.O_RDONLY)
    return marks(fd, lambda: os.fchmod(fd, 0o600))
""",
    "change the times of a file of the host's": "marks(t['victim'], lambda: os.utime(t['victim'], (1, 1)))",
    "change the times of a file it may read": """
    fd = os.open(t['readable'] + '/data.txt', os.O_RDONLY)
    return marks(fd, lambda: os.utime(fd, (1, 1)))
""",
    "change the group of a file of the host's": "marks(t['victim'], lambda: os.chown(t['victim'], -1, t['gid']))",
    "set an attribute of a file of the host's": "marks(t['victim'], lambda: os.setxattr(t['victim'], 'user.x', b'1'))",
    "set an attribute of a file it may read": """
    fd = os.open(t['readable'] + '/data.txt', os.O_RDONLY)
    return marks(fd, lambda: os.setxattr(fd, 'user.x', b'1'))
""",
    "set the flags of a file it may read": """
    fd = os.open(t['readable'] + '/data.txt', os.O_RDONLY)
    return marks(fd, lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('l', 0x80)))  # FS_IOC_SETFLAGS, noatime
""",
    "change the mode of a device": "each_time(5, lambda: marks('/dev/null', lambda: os.chmod('/dev/null', 0o666)))",
    "read the list of users": "take('/etc/passwd')",
    "write into the standard library": "os.open(t['library'], os.O_WRONLY)",
    "read through a link in scratch": "(os.symlink(t['secret'], 'link'), take('link'))",
    "write through a link in scratch": "(os.symlink(t['victim'], 'link2'), put('link2'))",
    "list through a link in scratch": "(os.symlink(t['folder'], 'link3'), os.listdir('link3'))",
    "read through a link in a granted folder": "take(t['readable'] + '/link')",
    "read beside a granted folder, through its parent": "take(t['readable'] + '/../secret.txt')",
    "write into a folder granted for reading": "put(t['readable'] + '/made', b'x', NEW)",
    "list the folder above scratch": "os.listdir('..')",
    "read its own error file": "take(os.path.dirname(t['connection_file']) + '/../stderr.log')",
    "go to a folder of the host's and list it": """
    here = os.open('.', os.O_RDONLY)
    os.chdir(t['folder'])
    try:
        return os.listdir('.')
    finally:
        os.fchdir(here)
""",
    "write into /dev/shm": "put('/dev/shm/' + t['unique'], b'x', NEW)",
    "write into the common temporary folder": "put('/tmp/' + t['unique'], b'x', NEW)",
    "read the machine's devices": "os.listdir('/sys/class')",
    "read the kernel's messages": "os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)",
    "watch a folder of the host's": """
    fd = libc.inotify_init1(0)
    if fd < 0 or libc.inotify_add_watch(fd, t['folder'].encode(), 0x100) < 0:
        raise OSError(ctypes.get_errno(), 'inotify')
""",
    "read the log and the vault": "take(t['database'])",
    "write to the log and the vault": "os.open(t['database'], os.O_RDWR)",
    "list another worker's scratch folder": "os.listdir(t['neighbour']['scratch'])",
    "read a file in another worker's scratch folder": "take(t['neighbour']['scratch'] + '/private.txt')",
    "read another worker's connection file": "take(t['neighbour']['connection_file'])",
    "list another worker's sockets": "os.listdir(os.path.dirname(t['neighbour']['connection_file']))",
})  # fmt: skip

_GRANTED = [
    *_table({
        "open a new file with a set-user-id mode":
            "os.fstat(os.open(t['writable'] + '/suid1', NEW, 0o4755)).st_mode & 0o6000 or 'denied'",
        "make a file set-user-id": """
    put(t['writable'] + '/suid2', b'x', NEW)
    os.chmod(t['writable'] + '/suid2', 0o4755)
    return os.stat(t['writable'] + '/suid2').st_mode & 0o6000 or 'denied'
""",
        "make an open file set-user-id": """
    fd = os.open(t['writable'] + '/suid3', NEW)
    os.fchmod(fd, 0o6755)
    return os.fstat(fd).st_mode & 0o6000 or 'denied'
""",
        "make a file set-user-id by openat2": """
    how = struct.pack('QQQ', NEW, 0o4755, 0)
    syscall(t, 'openat2', -100, (t['writable'] + '/suid4').encode(), how, len(how))
    return os.stat(t['writable'] + '/suid4').st_mode & 0o6000 or 'denied'
""",
        "make a file set-user-id by fchmodat2": """
    put(t['writable'] + '/suid5', b'x', NEW)
    syscall(t, 'fchmodat2', -100, (t['writable'] + '/suid5').encode(), 0o4755, 0)
    return os.stat(t['writable'] + '/suid5').st_mode & 0o6000 or 'denied'
""",
        "make a device in a granted folder": "os.mknod(t['writable'] + '/disk', 0o60600, os.makedev(7, 0))",
        "make a named pipe in a granted folder": "os.mkfifo(t['writable'] + '/pipe')",
        "make a socket in a granted folder": "socket.socket(socket.AF_UNIX).bind(t['writable'] + '/socket')",
    }),
    *_table({
        "leave a link to elsewhere in a folder it may write": "os.symlink('/etc', t['writable'] + '/link-out') or 'yes'",
        "leave a program in a folder it may write": "put(t['writable'] + '/program.sh', b'#!/bin/sh', NEW)",
    }, namespaces=OPEN, landlock=OPEN,
        said="leaving anything in a folder that you let it write: links to elsewhere, programs, files with any content"),
    *_table({
        "lock a file it may read": "fcntl.flock(os.open(t['readable'] + '/data.txt', os.O_RDONLY), fcntl.LOCK_EX) or 'yes'",
    }, namespaces=OPEN, landlock=OPEN, said="locking a file that it may read or write, which other programs may wait for"),
    *_table({
        "learn that a file of the host's exists": "os.stat(t['secret']).st_size",
        "learn the host's name": "'yes' if os.uname().nodename == t['hostname'] else 'denied'",
    }, landlock=OPEN,
        said="learning that files exist (their names' permissions, not their content), and the host's name"),
    *_table({
        "learn the kernel's version": "os.uname().release",
        "learn how busy the machine is": "os.getloadavg()",
    }, namespaces=OPEN, landlock=OPEN, said="learning about the machine: its kernel, processors, memory and load"),
    *_table({"read an installed package": "take(t['library'])"}, namespaces=OPEN, landlock=OPEN,
            said="reading the installed Python packages and system libraries"),
]  # fmt: skip

_PROC = _table({
    "read the host through /proc/self/root": "take('/proc/self/root' + t['secret'])",
    "read the host through /proc/<host>/root": "take(f\"/proc/{t['host_pid']}/root{t['secret']}\")",
    "read the host through /proc/self/cwd": "os.listdir('/proc/self/cwd/../..')",
    "read the host through /proc/self/task": "take(f\"/proc/self/task/{threading.get_native_id()}/root{t['secret']}\")",
    "read the host's environment": "take(f\"/proc/{t['host_pid']}/environ\")",
    "read the host's command line": "take(f\"/proc/{t['host_pid']}/cmdline\")",
    "list the host's descriptors": "os.listdir(f\"/proc/{t['host_pid']}/fd\")",
    "open the host's memory": "os.open(f\"/proc/{t['host_pid']}/mem\", os.O_RDWR)",
    "see the machine's processes": "os.stat(f\"/proc/{t['host_pid']}/status\") and take(f\"/proc/{t['host_pid']}/status\")",
    "see the host's sockets": "'yes' if t['abstract'] in open('/proc/self/net/unix').read() else 'denied'",
    "see the host's connections": "'yes' if f\":{t['port']:04X} \" in open('/proc/self/net/tcp').read() else 'denied'",
    "see the host's sockets through a thread":
        "'yes' if t['abstract'] in open(f'/proc/self/task/{threading.get_native_id()}/net/unix').read() else 'denied'",
    "see the host's mounts": "take('/proc/self/mountinfo')",
    "set what a crash of any process runs": "put('/proc/sys/kernel/core_pattern', open('/proc/sys/kernel/core_pattern', 'rb').read())",
    "change a setting of the kernel's": "os.open('/proc/sys/vm/swappiness', os.O_WRONLY)",
    "read the kernel's symbols": "take('/proc/kallsyms')",
    "read the keys in the kernel": "open('/proc/keys').read() and 'yes'",
    "write its own memory past its protection": "os.open('/proc/self/mem', os.O_RDWR)",
    "choose who dies when memory runs out": "put('/proc/self/oom_score_adj', b'0')",
    "map its own user numbers": "os.open('/proc/self/uid_map', os.O_WRONLY)",
    "drive the machine's timers": "os.open('/proc/timer_list', os.O_RDONLY)",
})  # fmt: skip

_PROC += _table(
    {
        "read the host through /proc/1/root": "take('/proc/1/root' + t['secret'])",
        "press the magic key": "os.open('/proc/sysrq-trigger', os.O_WRONLY)",
        "read the kernel's memory": "os.open('/proc/kcore', os.O_RDONLY)",
        "open any file of the disk": "os.open(t['disk'], os.O_RDONLY) and 'yes'",
    },
    control="few machines and no container let even root do that",
)
_PROC += _table({
    "signal the process it comes from": "os.kill(os.getppid(), 0) or 'yes'",
    "read the environment of the process it comes from": "take(f'/proc/{os.getppid()}/environ') and 'yes'",
    "list the descriptors of the process it comes from": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "open the memory of the process it comes from": "os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR)",
})  # fmt: skip

_SOCKETS = [
    *_table({
        f"open a socket of the family {name}": f"socket.socket({family}, {kind}, {protocol})"
        for name, family, kind, protocol in [
            ("INET", 2, 1, 0), ("INET (datagrams)", 2, 2, 0), ("INET6", 10, 1, 0), ("UNIX", 1, 1, 0),
            ("UNIX (datagrams)", 1, 2, 0), ("NETLINK", 16, 3, 0), ("PACKET", 17, 3, 0), ("INET (raw)", 2, 3, 1),
        ]
    }),
    *_table(
        {
            f"open a socket of the family {name}": f"reached(t, 'socket', {family}, {kind}, 0)"
            for name, family, kind in [("VSOCK", 40, 1), ("ALG", 38, 5), ("BLUETOOTH", 31, 3), ("CAN", 29, 3),
                                       ("TIPC", 30, 5), ("XDP", 44, 3), ("KEY", 15, 3)]
        },
    ),
    *_table({
        "make a pair that can send datagrams to any socket": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "make a pair of packets": "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
        "send a datagram to a socket of the host's":
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', t['datagrams'])",
        "connect to a socket of the host's": "socket.socket(socket.AF_UNIX).connect(t['socket'])",
        "connect to an abstract socket of the host's": "socket.socket(socket.AF_UNIX).connect('\\0' + t['abstract'])",
        "connect to the host over IPv4": "socket.create_connection(('127.0.0.1', t['port']), 2)",
        "connect an existing pair elsewhere": """
    pair = socket.socketpair()
    return reached(t, 'connect', pair[0].fileno(), struct.pack('H', 0), 2)
""",
        "drive another worker through its sockets": """
    folder = os.path.dirname(t['neighbour']['connection_file'])
    socket.socket(socket.AF_UNIX).connect(os.path.join(folder, t['neighbour']['sockets'][0]))
""",
        "listen on an existing pair": "reached(t, 'listen', socket.socketpair()[0].fileno(), 1)",
        "bind an existing pair": "reached(t, 'bind', socket.socketpair()[0].fileno(), struct.pack('H', 1), 2)",
    }),
]  # fmt: skip

_PROCESSES = _table({
    "fork": "(os.fork() or os._exit(0)) and os.wait()",
    "fork without Python": "(syscall(t, 'fork') if 'fork' in t['numbers'] else os.fork()) or os._exit(0)",
    "vfork": "'yes' if t['tier'] == 'process' else reached(t, 'vfork')",
    "clone a process": "syscall(t, t['clone'], 17, 0, 0, 0, 0) or os._exit(0)",
    "clone a process into new namespaces": "syscall(t, t['clone'], 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "clone3": "reached(t, 'clone3', struct.pack('11Q', *[0] * 11), 0)",
    "start a program": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    "start a program by subprocess": "__import__('subprocess').run(['/bin/true'], check=True) and 'yes'",
    "become a program": "reached(t, 'execve', b'/nonexistent', 0, 0)",
    "become a program in memory": "reached(t, 'execveat', -1, b'', 0, 0, 0x1000)",
    "hold a program in memory": "os.memfd_create('x')",
    "signal the host": "os.kill(t['host_pid'], 0) or 'yes'",
    "signal everybody": "os.kill(-1, 0) or 'yes'",
    "signal its group": "os.kill(0, 0) or 'yes'",
    "signal another process's thread": "reached(t, t['tgkill'], t['pid'], t['pid'], 0)",
    "signal a thread by its number alone": "reached(t, 'tkill', t['pid'], 0)",
    "queue a signal": "reached(t, 'rt_sigqueueinfo', t['pid'], 0, struct.pack('iii', 0, 0, -1) + bytes(116))",
    "get a handle of another process": "os.pidfd_open(t['pid'])",
    "signal through a handle": "reached(t, 'pidfd_send_signal', -1, 0, 0, 0)",
    "take a descriptor from another process": "reached(t, 'pidfd_getfd', -1, 0, 0)",
    "have the kernel signal another process": "fcntl.fcntl(socket.socketpair()[0], fcntl.F_SETOWN, t['pid']) or 'yes'",
    "have the kernel signal another process (F_SETOWN_EX)":
        "fcntl.fcntl(socket.socketpair()[0], 15, struct.pack('ii', 1, t['pid'])) and 'yes'",
    "have the kernel signal another process (FIOSETOWN)":
        "fcntl.ioctl(socket.socketpair()[0], 0x8901, struct.pack('i', t['pid'])) and 'yes'",
    "trace another process": "reached(t, 'ptrace', 0x4206, t['pid'], 0, 0)",
    "ask to be traced": "reached(t, 'ptrace', 0x4207, 0, 0, 0)",
    "read another process's memory": "reached(t, 'process_vm_readv', t['pid'], bytes(16), 1, bytes(16), 1, 0)",
    "write another process's memory": "reached(t, 'process_vm_writev', t['pid'], bytes(16), 1, bytes(16), 1, 0)",
    "compare descriptors with another process": "reached(t, 'kcmp', os.getpid(), t['pid'], 0, 0, 0)",
    "move another process's memory": "reached(t, 'move_pages', t['pid'], 0, 0, 0, 0, 0)",
    "advise on another process's memory": "reached(t, 'process_madvise', -1, 0, 0, 0, 0)",
    "set another process's limits": "resource.prlimit(t['pid'], resource.RLIMIT_CORE, resource.prlimit(t['pid'], resource.RLIMIT_CORE))",
    "set another process's priority": "os.setpriority(os.PRIO_PROCESS, t['pid'], os.getpriority(os.PRIO_PROCESS, t['pid']) + 1) or 'yes'",
    "pin another process to a processor": "os.sched_setaffinity(t['pid'], os.sched_getaffinity(0)) or 'yes'",
    "set another process's scheduler": "reschedule(t['pid'])",
    "set its own scheduler": "reschedule(0)",
    "raise its own priority": "os.setpriority(os.PRIO_PROCESS, 0, -5) or 'yes'",
    "set another process's disk priority": "reached(t, 'ioprio_set', 1, t['pid'], 2 << 13 | 5)",
    "survive its parent": "libc.prctl(1, 0, 0, 0, 0) and refuse() or 'yes'".replace("refuse()", "os.kill(-1, 0)"),
})  # fmt: skip

_KERNEL = [
    *_table({
        "make a user namespace": "reached(t, 'unshare', 0x10000000)",
        "make a mount namespace": "reached(t, 'unshare', 0x20000)",
        "make a network namespace": "reached(t, 'unshare', 0x40000000)",
        "join a namespace": "reached(t, 'setns', -1, 0)",
        "mount": "(os.mkdir('m'), syscall(t, 'mount', b'none', b'm', b'tmpfs', 0, 0), libc.umount(b'm'))",
        "unmount": "reached(t, 'umount2', b'/nonexistent', 0)",
        "change the root folder": "syscall(t, 'chroot', b'/') or 'yes'",
        "swap the root folder": "reached(t, 'pivot_root', b'.', b'.')",
        "open a file system": "reached(t, 'fsopen', b'tmpfs', 0)",
        "copy a mount": "reached(t, 'open_tree', -100, b'/', 1)",
        "move a mount": "reached(t, 'move_mount', -1, b'', -1, b'', 0)",
        "change a mount": "reached(t, 'mount_setattr', -1, b'', 0, 0, 0)",
        "open a file by its number": "reached(t, 'open_by_handle_at', -100, bytes(128), 0)",
        "ask for a file's number": "reached(t, 'name_to_handle_at', -100, b'.', bytes(128), bytes(8), 0)",
        "make an io_uring": "reached(t, 'io_uring_setup', 1, ctypes.create_string_buffer(256))",
        "load a BPF program": "reached(t, 'bpf', 5, bytes(128), 128)",
        "open a performance counter": "reached(t, 'perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0)",
        "handle page faults": "reached(t, 'userfaultfd', 1)",
        "add a key": "syscall(t, 'add_key', b'user', b'healkit', b'x', 1, -2)",
        "ask for a key": "reached(t, 'request_key', b'user', b'healkit', 0, 0)",
        "use the keyring": "syscall(t, 'keyctl', 0, -2, 1) and 'yes'",
        "make System V shared memory": "(i := syscall(t, 'shmget', 0, 4096, 0o1600)) is not None and (syscall(t, 'shmctl', i, 0, 0) or 'yes')",
        "make System V semaphores": "(i := syscall(t, 'semget', 0, 1, 0o1600)) is not None and (syscall(t, 'semctl', i, 0, 0) or 'yes')",
        "make a System V message queue": "(i := syscall(t, 'msgget', 0, 0o1600)) is not None and (syscall(t, 'msgctl', i, 0, 0) or 'yes')",
        "make a POSIX message queue": "reached(t, 'mq_open', t['unique'].encode(), 0, 0, 0)",
        "restart the machine": "reached(t, 'reboot', 0, 0, 0, 0)",
        "set the clock": "reached(t, 'clock_settime', 99, bytes(16))",
        "name the machine": "socket.sethostname(socket.gethostname()) or 'yes'",
        "swap memory to a file": "reached(t, 'swapoff', b'/nonexistent')",
        "read the kernel's log": "reached(t, 'syslog', 3, ctypes.create_string_buffer(64), 64)",
        "watch file access of the whole machine": "reached(t, 'fanotify_init', 0x200, 0)",
        "watch files": "reached(t, t['inotify_init1'], 0)",
        "take another personality": "reached(t, 'personality', 0xFFFFFFFF)",
        "become another user": "syscall(t, t['setresuid'], 65533, 65533, 65533) or 'yes'",
        "become another group": "syscall(t, t['setresgid'], 65533, 65533, 65533) or 'yes'",
        "drop and take groups": "syscall(t, t['setgroups'], 0, 0) or 'yes'",
        "type into a terminal": "typed(t)",
    }),
    *_table({
        "take capabilities": """
    header, data = struct.pack('Ii', 0x20080522, 0), struct.pack('6I', 1 << 21, 1 << 21, 0, 0, 0, 0)
    return syscall(t, t['capset'], header, data) or 'yes'
""",
        "have any capability": """
    header, data = struct.pack('Ii', 0x20080522, 0), ctypes.create_string_buffer(24)
    syscall(t, t['capget'], header, data)
    return any(struct.unpack('6I', data.raw)) and 'yes' or 'denied'
""",
    }),
    *_table({
        "load a kernel module": "reached(t, 'finit_module', -1, b'', 0)",
        "unload a kernel module": "reached(t, 'delete_module', b'healkit_nonexistent', 0x800)",
        "load another kernel": "reached(t, 'kexec_load', 0, 99, 0, 99)",
    }, control="a kernel without modules refuses too"),
    *_table({"make a system call of the x32 kind": "syscall(t, 0x40000000 | 41, 2, 1, 0)"},
            control="few kernels are built with x32"),
    *_table({
        "make a sparse file of a terabyte": "os.truncate(os.open('sparse', NEW), 1 << 40) or 'yes'",
        "reserve a terabyte of disk": "os.posix_fallocate(os.open('reserved', NEW), 0, 1 << 40) or 'yes'",
        "write beyond the size of a file": "os.pwrite(os.open('far', NEW), b'x', 1 << 40)",
        "hold a thousand files open": "hoard()",
        "map a hundred gigabytes": "mmap.mmap(-1, 100 << 30) and 'yes'",
        "write a core file": "resource.getrlimit(resource.RLIMIT_CORE)[1] or 'denied'",
    }, control=_LIMITED),
    *_table({
        "raise its own limit of open files": "resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999)) or 'yes'",
        "raise its own limit of file size": "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 50, 1 << 50)) or 'yes'",
        "raise its own limit of memory": "resource.setrlimit(resource.RLIMIT_AS, (1 << 50, 1 << 50)) or 'yes'",
        "raise its own limit of processor time": "resource.setrlimit(resource.RLIMIT_CPU, (99999, 99999)) or 'yes'",
        "rewrite its own memory map": "reached(t, t['prctl'], 35, 1, 4096, 0, 0)",
    }, control="it takes CAP_SYS_RESOURCE, which root in a container often lacks"),
    *_table({
        "use up the user's timers": """
    made = 0
    for _ in range(2000):
        identity = ctypes.create_string_buffer(8)
        if libc.timer_create(1, 0, identity) != 0:
            return "denied"
        made += 1
    return made
""",
    }, control=_LIMITED),
]  # fmt: skip

_DESCRIPTORS = [
    Probe(
        "find a folder, device or file of the host's among its descriptors",
        r"""
import stat as modes
def attempt(t):
    found = []
    statm = os.stat("/proc/self/statm")
    last_words = os.path.join(os.path.dirname(os.path.dirname(t["connection_file"])), "stderr.log")
    for fd in range(256):
        try:
            status = os.fstat(fd)
        except OSError:
            continue
        kind = status.st_mode
        if modes.S_ISDIR(kind) or modes.S_ISBLK(kind):
            found.append(f"{fd}: folder or disk")
        elif modes.S_ISREG(kind) and not os.path.samestat(status, statm):
            name = os.readlink(f"/proc/self/fd/{fd}")
            if name != last_words or fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY:
                found.append(f"{fd}: {name}")
        elif modes.S_ISCHR(kind) and not os.path.samestat(status, os.stat("/dev/null")) and status.st_rdev not in (0x101, 0x108, 0x109):
            found.append(f"{fd}: device {status.st_rdev:#x}")
    return found or "denied"
""",
        control="the host hands a worker no more at the process tier",
    ),
    Probe(
        "find a socket of the host's among its descriptors",
        r"""
import stat as modes
def attempt(t):
    found = []
    own = os.path.dirname(t["connection_file"])
    for fd in range(256):
        try:
            if not modes.S_ISSOCK(os.fstat(fd).st_mode):
                continue
        except OSError:
            continue
        held = socket.socket(fileno=os.dup(fd))
        with held:
            try:
                peer, name = held.getpeername(), held.getsockname()
            except OSError:
                peer, name = "", held.getsockname()
            if held.family != socket.AF_UNIX or not all(n == "" or str(n).startswith(own) for n in (name, peer)):
                found.append(f"{fd}: {held.family.name} {name} {peer} {own}")
    return found or "denied"
""",
        control="the host hands a worker no more at the process tier",
    ),
]

PROBES: tuple[Probe, ...] = (
    *_DESCRIPTORS, *_OUTSIDE, *_GRANTED, *_PROC, *_SOCKETS, *_PROCESSES, *_KERNEL,
)  # fmt: skip


def batch_source() -> str:
    """A tool that makes all the attempts, each in a thread of its own, and returns name → "denied" or "ALLOWED: …"."""
    return f'''
import json
{PRELUDE}

def batch(targets: dict, probes: list) -> dict:
    import ipykernel.connect
    targets["connection_file"] = ipykernel.connect.get_connection_file()
    targets["opened"] = []
    return {{name: tried(code, targets) for name, code in probes}}

def tried(code, targets):
    """One attempt, in a thread: what it changes of its own credentials and namespaces goes away with it."""
    facts = []
    def run():
        try:
            namespace = dict(globals())
            exec(code, namespace)
            got = namespace["attempt"](targets)
            facts.append("denied" if got == "denied" else f"ALLOWED: {{got!r:.200}}")
        except OSError as error:
            kind = "denied" if error.errno in EXPECTED else "broken"
            facts.append(f"{{kind}}: {{type(error).__name__}} {{error}}")
        except (MemoryError, ValueError) as error:
            facts.append(f"denied: {{type(error).__name__}} {{error}}")
        except BaseException as error:
            facts.append(f"broken: {{error!r}}")
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return facts[0] if facts else "broken: it takes too long"
'''

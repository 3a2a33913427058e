"""Attempts on files, by probes."""

from __future__ import annotations

from probe_table import OPEN, Probe, table

OUTSIDE = table({
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

GRANTED = [
    *table({
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
    *table({
        "leave a link to elsewhere in a folder it may write": "os.symlink('/etc', t['writable'] + '/link-out') or 'yes'",
        "leave a program in a folder it may write": "put(t['writable'] + '/program.sh', b'#!/bin/sh', NEW)",
    }, namespaces=OPEN, landlock=OPEN,
        said="leaving anything in a folder that you let it write: links to elsewhere, programs, files with any content"),
    *table({
        "lock a file it may read": "fcntl.flock(os.open(t['readable'] + '/data.txt', os.O_RDONLY), fcntl.LOCK_EX) or 'yes'",
    }, namespaces=OPEN, landlock=OPEN, said="locking a file that it may read or write, which other programs may wait for"),
    *table({
        "learn that a file of the host's exists": "os.stat(t['secret']).st_size",
        "learn the host's name": "'yes' if os.uname().nodename == t['hostname'] else 'denied'",
    }, landlock=OPEN,
        said="learning whether a path exists, with its size, times and permissions (not its content), and the host's name"),
    *table({
        "learn the kernel's version": "os.uname().release",
        "learn how busy the machine is": "os.getloadavg()",
    }, namespaces=OPEN, landlock=OPEN, said="learning about the machine: its kernel, processors, memory and load"),
    *table({"read an installed package": "take(t['library'])"}, namespaces=OPEN, landlock=OPEN,
            said="reading the installed Python packages and system libraries"),
]  # fmt: skip

PROC = table({
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

PROC += table(
    {
        "read the host through /proc/1/root": "take('/proc/1/root' + t['secret'])",
        "press the magic key": "os.open('/proc/sysrq-trigger', os.O_WRONLY)",
        "read the kernel's memory": "os.open('/proc/kcore', os.O_RDONLY)",
        "open any file of the disk": "os.open(t['disk'], os.O_RDONLY) and 'yes'",
    },
    control="few machines and no container let even root do that",
)
PROC += table({
    "signal the process it comes from": "os.kill(os.getppid(), 0) or 'yes'",
    "read the environment of the process it comes from": "take(f'/proc/{os.getppid()}/environ') and 'yes'",
    "list the descriptors of the process it comes from": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "open the memory of the process it comes from": "os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR)",
})  # fmt: skip

DESCRIPTORS = [
    Probe(
        "find a folder, device or file of the host's among its descriptors",
        r"""
import stat as modes
def attempt(t):
    found, regions = [], 0
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
            if name == "/memfd:healkit-data (deleted)" and not regions:  # for the result, of a size that is sealed
                regions += 1
                if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & 6 != 6:
                    found.append(f"{fd}: a region that can grow")
                continue
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

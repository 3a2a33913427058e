"""Tool that makes all attempts, and what their code may use."""

from __future__ import annotations

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


def batch_source() -> str:
    """Return a tool that makes each attempt in a thread of its own: name → "denied" or "ALLOWED: …"."""
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

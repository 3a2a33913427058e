"""Ways to write past the limit of a scratch folder.

Each is a tool of its own.

`attempt()` writes all that it can, up to four times the limit, and returns `held(bytes)`: how much of the disk or of the
kernel's memory it then holds. Many ways are refused at once; the rest must be ended by the host while they hold on.
"""

from __future__ import annotations

#: Limit of the scratch folders, in MiB.
LIMIT_MB = 8

PRELUDE = rf'''
import ctypes, errno, fcntl, mmap, os, resource, shutil, signal, socket, struct, sys, threading, time

MB = 1 << 20
LIMIT = {LIMIT_MB} * MB
GOAL = 4 * LIMIT
HALF = LIMIT // 2
NEW = os.O_RDWR | os.O_CREAT
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = dict(x86_64=dict(io_uring_setup=425, io_setup=206, memfd_secret=447, fallocate=285, shmget=29, shmat=30, mq_open=240,
                           openat2=437, copy_file_range=326, setxattr=188, syncfs=306, open_tree=428, fsopen=430),
               aarch64=dict(io_uring_setup=425, io_setup=0, memfd_secret=447, fallocate=47, shmget=194, shmat=196, mq_open=180,
                            openat2=437, copy_file_range=285, setxattr=5, syncfs=267, open_tree=428, fsopen=430))[os.uname().machine]

def syscall(name, *args):
    passed = [a if isinstance(a, bytes | ctypes.Array) else ctypes.c_long(a) for a in args]
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *passed)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def called(name, *args):
    result = getattr(libc, name)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def fill(fd, size=HALF):
    for _ in range(size // MB):
        os.write(fd, bytes(MB))
    return size

def put(name, size=HALF, flags=NEW, dir_fd=None):
    """A file of that size, open."""
    fd = os.open(name, flags, 0o600, dir_fd=dir_fd)
    fill(fd, size)
    return fd

def held(size):
    """What is held; long enough for the host to see it even on a busy machine."""
    if size > LIMIT:
        time.sleep(20)
    return size

def below(depth, name):
    """The descriptor of the last of so many folders within each other."""
    here = os.open(".", os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    return here

def many(make, count=60_000, each=LIMIT // 20_000):
    """So many of something; 20,000 are allowed."""
    made = 0
    for number in range(count):
        make(str(number))
        made += 1
    return held(made * (each + 1))
'''

#: Name → the lines of `attempt()`.
WAYS: dict[str, str] = {
    # plain files
    "one large file": "return held(fill(os.open('x', NEW), GOAL))",
    "one large file, the signal ignored": "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nreturn held(fill(os.open('x', NEW), GOAL))",
    "one large file, the limit raised":
        "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\nreturn held(fill(os.open('x', NEW), GOAL))",
    "a few files": "for n in range(8):\n    os.close(put(str(n)))\nreturn held(GOAL)",
    "a few files, appended to": "for n in range(8):\n    os.close(put(str(n), flags=NEW | os.O_APPEND))\nreturn held(GOAL)",
    "a few files, through Python's own": "for n in range(8):\n    with open(str(n), 'wb') as f:\n        f.write(bytes(HALF))\nreturn held(GOAL)",
    "a few files, past the cache": "page = mmap.mmap(-1, MB)\nfor n in range(8):\n    fd = os.open(str(n), NEW | os.O_DIRECT)\n"
        "    for _ in range(HALF // MB):\n        os.write(fd, page)\nreturn held(GOAL)",
    "a few files, by pwritev": "for n in range(8):\n    fd = os.open(str(n), NEW)\n    for m in range(HALF // MB):\n"
        "        os.pwritev(fd, [bytes(MB)], m * MB)\nreturn held(GOAL)",
    "files of one block": "for n in range(GOAL // 4096):\n    fd = os.open(str(n), NEW)\n    os.write(fd, bytes(4096))\n    os.close(fd)\nreturn held(GOAL)",
    "files from many threads": "made = []\nthreading.stack_size(1 << 18)\nthreads = [threading.Thread(target=lambda n=n: made.append(put(str(n)))) for n in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nreturn held(HALF * len(made))",
    "a database": "import sqlite3\ndb = sqlite3.connect('db')\ndb.execute('create table t (x)')\nfor n in range(GOAL // MB):\n"
        "    db.execute('insert into t values (zeroblob(1048576))')\n    db.commit()\nreturn held(GOAL)",
    "an archive": "import zipfile\nwith zipfile.ZipFile('z', 'w') as z:\n    for n in range(GOAL // MB):\n        z.writestr(str(n), bytes(MB))\nreturn held(GOAL)",
    "copies": "put('x')\nfor n in range(8):\n    shutil.copyfile('x', str(n))\nreturn held(GOAL)",
    "copies by copy_file_range": "src = put('x')\nfor n in range(8):\n    dst = os.open(str(n), NEW)\n    done = 0\n"
        "    while done < HALF:\n        done += os.copy_file_range(src, dst, HALF - done, done, done)\nreturn held(GOAL)",
    "copies by sendfile": "src = put('x')\nfor n in range(8):\n    dst = os.open(str(n), NEW)\n    done = 0\n"
        "    while done < HALF:\n        done += os.sendfile(dst, src, done, HALF - done)\nreturn held(GOAL)",
    "copies by reference": "src = put('x')\nfor n in range(8):\n    fcntl.ioctl(os.open(str(n), NEW), 0x40049409, src)\nreturn held(GOAL)",
    "splice from a pipe": "r, w = os.pipe()\nfor n in range(8):\n    fd = os.open(str(n), NEW)\n    for _ in range(HALF // 65536):\n"
        "        os.write(w, bytes(65536))\n        if os.splice(r, fd, 65536) < 65536:\n            raise OSError('no room')\nreturn held(GOAL)",
    # room without writing
    "fallocate": "for n in range(8):\n    os.posix_fallocate(os.open(str(n), NEW), 0, HALF)\nreturn held(GOAL)",
    "fallocate beyond the end": "syscall('fallocate', os.open('x', NEW), 1, 0, 64 * GOAL)\nreturn held(GOAL)",
    "a hole that is filled by a mapping": "for n in range(8):\n    fd = os.open(str(n), NEW)\n    os.ftruncate(fd, HALF)\n"
        "    with mmap.mmap(fd, HALF) as m:\n        m.write(bytes(HALF))\nreturn held(GOAL)",
    "holes filled here and there": "for n in range(8):\n    fd = os.open(str(n), NEW)\n    for m in range(HALF // 8192):\n"
        "        os.pwrite(fd, bytes(4096), 8192 * m)\nfor n in range(8, 16):\n    put(str(n), HALF // 2)\nreturn held(GOAL)",
    "extended attributes": "put('x', MB)\nfor n in range(GOAL // 60_000):\n    os.setxattr('x', f'user.{n}', bytes(60_000))\nreturn held(GOAL)",
    "the flags of a file": "fcntl.ioctl(put('x', MB), 0x40086602, struct.pack('l', 0x10))\nreturn held(GOAL)",
    # many entries
    "empty files": "return many(lambda n: os.close(os.open(n, NEW)))",
    "empty folders": "return many(os.mkdir)",
    "folders within each other": "home = os.getcwd()\ntry:\n    for n in range(60_000):\n        if n % 500 == 0:\n            os.chdir(home)\n"
        "        os.mkdir(f'd{n}')\n        os.chdir(f'd{n}')\n    os.chdir(home)\n    return held(GOAL)\nfinally:\n    os.chdir(home)",
    "hard links": "put('x', 0)\nreturn many(lambda n: os.link('x', n))",
    "links": "return many(lambda n: os.symlink('x', n))",
    "links to long names": "return many(lambda n: os.symlink('x' * 4000, n), 19_900, 4096)",
    "long names": "return many(lambda n: os.close(os.open(n.rjust(255, 'x'), NEW)), 60_000)",
    "files in many folders": "def make(n):\n    os.mkdir(n)\n    for m in range(20):\n        os.close(os.open(f'{n}/{m}', NEW))\nreturn many(make, 3_000, 21 * 400)",
    # where a walk does not reach
    "20 folders with long names": "here = below(20, 'd' * 250)\nfor n in range(8):\n    put(str(n), dir_fd=here)\nreturn held(GOAL)",
    "1,500 folders": "here = below(1_500, 'd')\nfor n in range(8):\n    put(str(n), dir_fd=here)\nreturn held(GOAL)",
    "files on every level": "for n in range(64):\n    os.mkdir('d' * 250)\n    os.chdir('d' * 250)\n    os.close(put('x', MB))\nreturn held(GOAL)",
    "a folder that cannot be listed": "os.mkdir('d', 0o300)\nfor n in range(8):\n    put(f'd/{n}')\nreturn held(GOAL)",
    "a folder made unreadable": "os.mkdir('d')\nfor n in range(8):\n    put(f'd/{n}')\nos.chmod('d', 0)\nreturn held(GOAL)",
    "an open folder made unreadable": "os.mkdir('d')\nfd = os.open('d', os.O_RDONLY)\nfor n in range(8):\n    put(str(n), dir_fd=fd)\n"
        "os.fchmod(fd, 0)\nreturn held(GOAL)",
    "scratch itself made unreadable": "os.chmod('.', 0o300)\nfor n in range(8):\n    put(str(n))\nreturn held(GOAL)",
    "a mask that hides folders": "os.umask(0o700)\nos.mkdir('d')\nos.umask(0)\nfor n in range(8):\n    put(f'd/{n}')\nreturn held(GOAL)",
    "60,000 files in a folder that cannot be listed": "os.mkdir('d', 0o300)\nreturn many(lambda n: os.close(os.open(f'd/{n}', NEW)))",
    "folders moved all the time": "for d in 'ab':\n    os.mkdir(d)\nos.mkdir('a/d')\nfor n in range(8):\n    put(f'a/d/{n}')\n"
        "until = time.monotonic() + 20\nwhile time.monotonic() < until:\n    os.rename('a/d', 'b/d')\n    os.rename('b/d', 'a/d')\nreturn GOAL",
    "deep folders moved all the time": "for d in 'ab':\n    os.mkdir(d)\nos.chdir('a')\nhere = below(30, 'd')\nfor n in range(8):\n    put(str(n), dir_fd=here)\n"
        "os.chdir('..')\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until:\n    os.rename('a/d', 'b/d')\n    os.rename('b/d', 'a/d')\nreturn GOAL",
    "files renamed all the time": "for n in range(8):\n    put(f'{n}a')\nuntil = time.monotonic() + 20\nwhile time.monotonic() < until:\n"
        "    for n in range(8):\n        os.rename(f'{n}a', f'{n}b')\n        os.rename(f'{n}b', f'{n}a')\nreturn GOAL",
    "a folder in the place of a file, and back": "for n in range(8):\n    put(str(n))\nos.mkdir('d')\nuntil = time.monotonic() + 20\n"
        "while time.monotonic() < until:\n    os.rename('0', 'e')\n    os.rename('d', '0')\n    os.rename('0', 'd')\n    os.rename('e', '0')\nreturn GOAL",
    "a loop of links": "os.symlink('.', 'loop')\nos.symlink('loop/loop', 'more')\nfor n in range(8):\n    put(f'loop/{n}')\nreturn held(GOAL)",
    "names that are no text": "for n in range(8):\n    put(b'\\xff\\n' + bytes([n + 1]))\nreturn held(GOAL)",
    "names that look like others": "for n in range(8):\n    put(f'.nfs{n} (deleted)')\nreturn held(GOAL)",
    # files without a name
    "removed files that are open": "for n in range(8):\n    put('x')\n    os.unlink('x')\nreturn held(GOAL)",
    "files that never had a name": "for n in range(8):\n    put('.', flags=os.O_RDWR | os.O_TMPFILE)\nreturn held(GOAL)",
    "replaced files that are open": "for n in range(8):\n    put('new')\n    os.rename('new', 'x')\nreturn held(GOAL)",
    "removed files in removed folders": "for n in range(8):\n    os.mkdir('d')\n    put('d/x')\n    os.unlink('d/x')\n    os.rmdir('d')\nreturn held(GOAL)",
    "removed files at high descriptors": "for n in range(8):\n    fd = put('x')\n    os.unlink('x')\n    os.dup2(fd, 200 + n)\n    os.close(fd)\nreturn held(GOAL)",
    "removed files whose descriptors move": "fds = []\nfor n in range(8):\n    fds.append(put('x'))\n    os.unlink('x')\nuntil = time.monotonic() + 20\n"
        "while time.monotonic() < until:\n    for n, fd in enumerate(fds):\n        moved = 100 + n if fd < 100 else 80 + n\n        os.dup2(fd, moved)\n"
        "        os.close(fd)\n        fds[n] = moved\nreturn GOAL",
    "removed files that are mapped": "for n in range(8):\n    fd = put('x')\n    os.unlink('x')\n    libc.mmap(None, 4096, 1, 1, fd, 0)\n    os.close(fd)\nreturn held(GOAL)",
    "mapped files that are removed later": "for n in range(8):\n    fd = put(str(n))\n    libc.mmap(None, 4096, 1, 2, fd, 0)\n    os.close(fd)\n"
        "for n in range(8):\n    os.unlink(str(n))\nreturn held(GOAL)",
    "removed files under way in a socket pair": "a, b = socket.socketpair()\nfor n in range(8):\n    fd = put('x')\n    os.unlink('x')\n"
        "    socket.send_fds(a, [b'x'], [fd])\n    os.close(fd)\nreturn held(GOAL)",
    "removed files whose holder hides": "called('prctl', 4, 0, 0, 0, 0)\nfor n in range(8):\n    put('x')\n    os.unlink('x')\nreturn held(GOAL)",
    "removed files of another process": "if os.fork() == 0:\n    for n in range(8):\n        put('x')\n        os.unlink('x')\n    time.sleep(20)\nreturn held(GOAL)",
    # other places
    "the folder above": "put('../x')\nreturn held(GOAL)",
    "the folder of the sockets": "for n in range(8):\n    put(f'../ipc/{n}')\nreturn held(GOAL)",
    "the common temporary folders": "for place in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/'):\n    try:\n        put(place + '/healkit-x')\n"
        "    except OSError:\n        continue\n    return GOAL\nraise PermissionError",
    "the error file": "for fd in range(3, 100):\n    try:\n        name = os.readlink(f'/proc/self/fd/{fd}')\n    except OSError:\n        continue\n"
        "    if name.endswith('stderr.log'):\n        fill(fd, LIMIT - MB)\n        return LIMIT - MB\nraise PermissionError",
    "another name for scratch": "os.rename('.', '../other')\nreturn held(GOAL)",
    "a link in the place of scratch": "home = os.getcwd()\nos.chdir('..')\nos.rmdir(home)\nos.symlink('/tmp', home)\nreturn held(GOAL)",
    "a mount": "os.mkdir('m')\ncalled('mount', b'none', b'm', b'tmpfs', 0, None)\nfor n in range(8):\n    put(f'm/{n}')\nreturn held(GOAL)",
    "a mount in namespaces of its own": "called('unshare', 0x10020000)\ncalled('mount', b'none', b'/tmp', b'tmpfs', 0, None)\nreturn held(GOAL)",
    "a file system without a mount": "syscall('fsopen', b'tmpfs', 0)\nreturn held(GOAL)",
    # memory instead of files
    "files in memory": "fd = os.memfd_create('x')\nreturn held(fill(fd, LIMIT - MB) * 4)",
    "secret memory": "syscall('memfd_secret', 0)\nreturn held(GOAL)",
    "System V shared memory": "syscall('shmget', 0, GOAL, 0o1600)\nreturn held(GOAL)",
    "POSIX shared memory": "from multiprocessing import shared_memory\nshared_memory.SharedMemory(create=True, size=GOAL)\nreturn held(GOAL)",
    "message queues": "syscall('mq_open', b'healkit-x', 0o102, 0o600, 0)\nreturn held(GOAL)",
    "io_uring": "syscall('io_uring_setup', 8, bytes(120))\nreturn held(GOAL)",
    "asynchronous writes": "syscall('io_setup', 8, ctypes.create_string_buffer(8))\nreturn held(GOAL)",
    "pipes": "size = 0\ntry:\n    while True:\n        r, w = os.pipe()\n        os.set_blocking(w, False)\n        size += os.write(w, bytes(MB))\n"
        "except OSError:\n    return size",
    "larger pipes": "fcntl.fcntl(os.pipe()[1], 1031, MB)\nreturn held(GOAL)",
    "socket pairs": "size = 0\npairs = []\ntry:\n    while True:\n        pairs.append(socket.socketpair())\n        for end in pairs[-1]:\n"
        "            end.setblocking(False)\n            try:\n                while True:\n                    size += end.send(bytes(65536))\n"
        "            except BlockingIOError:\n                pass\nexcept OSError:\n    return size",
    "larger socket pairs": "a, b = socket.socketpair()\na.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, GOAL)\nreturn held(GOAL)",
    # after the end
    "a thread that goes on": "def go_on():\n    for n in range(800):\n        os.close(put(f'late{n}', MB))\nthreading.Thread(target=go_on).start()\nreturn 0",
    "a thread that goes on after a failure": "def go_on():\n    for n in range(800):\n        os.close(put(f'late{n}', MB))\nthreading.Thread(target=go_on).start()\n"
        "raise PermissionError('and stays')",
    "a farewell": "import atexit\natexit.register(lambda: [put(f'late{n}') for n in range(8)])\nreturn 0",
}  # fmt: skip

#: What may be held although it is more than the limit: at most so many bytes, as docs/isolation.md says.
NAMED: dict[str, tuple[int, str]] = {
    "pipes": (16 << 20, "holding up to 16 MiB of the kernel's memory in pipes, and 64 MiB in socket pairs"),
    "socket pairs": (
        64 << 20,
        "holding up to 16 MiB of the kernel's memory in pipes, and 64 MiB in socket pairs",
    ),
}


def source_of(way: str) -> str:
    """Return the code of the tool."""
    lines = "\n".join(f"    {line}" for line in WAYS[way].splitlines())
    return f"{PRELUDE}\ndef attempt():\n{lines}\n"

"""Attempts on the kernel, by probes."""

from __future__ import annotations

from probe_table import LIMITED, table

SOCKETS = [
    *table({
        f"open a socket of the family {name}": f"socket.socket({family}, {kind}, {protocol})"
        for name, family, kind, protocol in [
            ("INET", 2, 1, 0), ("INET (datagrams)", 2, 2, 0), ("INET6", 10, 1, 0), ("UNIX", 1, 1, 0),
            ("UNIX (datagrams)", 1, 2, 0), ("NETLINK", 16, 3, 0), ("PACKET", 17, 3, 0), ("INET (raw)", 2, 3, 1),
        ]
    }),
    *table(
        {
            f"open a socket of the family {name}": f"reached(t, 'socket', {family}, {kind}, 0)"
            for name, family, kind in [("VSOCK", 40, 1), ("ALG", 38, 5), ("BLUETOOTH", 31, 3), ("CAN", 29, 3),
                                       ("TIPC", 30, 5), ("XDP", 44, 3), ("KEY", 15, 3)]
        },
    ),
    *table({
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

PROCESSES = table({
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

KERNEL = [
    *table({
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
    *table({
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
    *table({
        "load a kernel module": "reached(t, 'finit_module', -1, b'', 0)",
        "unload a kernel module": "reached(t, 'delete_module', b'healkit_nonexistent', 0x800)",
        "load another kernel": "reached(t, 'kexec_load', 0, 99, 0, 99)",
    }, control="a kernel without modules refuses too"),
    *table({"make a system call of the x32 kind": "syscall(t, 0x40000000 | 41, 2, 1, 0)"},
            control="few kernels are built with x32"),
    *table({
        "make a sparse file of a terabyte": "os.truncate(os.open('sparse', NEW), 1 << 40) or 'yes'",
        "reserve a terabyte of disk": "os.posix_fallocate(os.open('reserved', NEW), 0, 1 << 40) or 'yes'",
        "write beyond the size of a file": "os.pwrite(os.open('far', NEW), b'x', 1 << 40)",
        "hold a thousand files open": "hoard()",
        "map a hundred gigabytes": "mmap.mmap(-1, 100 << 30) and 'yes'",
        "write a core file": "resource.getrlimit(resource.RLIMIT_CORE)[1] or 'denied'",
    }, control=LIMITED),
    *table({
        "raise its own limit of open files": "resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999)) or 'yes'",
        "raise its own limit of file size": "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 50, 1 << 50)) or 'yes'",
        "raise its own limit of memory": "resource.setrlimit(resource.RLIMIT_AS, (1 << 50, 1 << 50)) or 'yes'",
        "raise its own limit of processor time": "resource.setrlimit(resource.RLIMIT_CPU, (99999, 99999)) or 'yes'",
        "rewrite its own memory map": "reached(t, t['prctl'], 35, 1, 4096, 0, 0)",
    }, control="it takes CAP_SYS_RESOURCE, which root in a container often lacks"),
    *table({
        "use up the user's timers": """
    made = 0
    for _ in range(2000):
        identity = ctypes.create_string_buffer(8)
        if libc.timer_create(1, 0, identity) != 0:
            return "denied"
        made += 1
    return made
""",
    }, control=LIMITED),
]  # fmt: skip

#: S7 and S3: memory of the kernel's, what the machine has for all, and what hides a file from the host's count.
HOARDS = table({
    "take the machine's asynchronous requests": "syscall(t, 'io_setup', 1, ctypes.create_string_buffer(8)) or 'yes'",
    "make a pipe hold more": "fcntl.fcntl(os.pipe()[1], 1031, 1 << 18)",
    "make a socket pair send more": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17) or 'yes'",
    "make a socket pair receive more":
        "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17) or 'yes'",
    "put a descriptor under way in a socket pair": """
    ours, theirs = socket.socketpair()
    return socket.send_fds(ours, [b'x'], [0])
""",
    "take room on the disk beyond a file's end": "syscall(t, t['fallocate'], os.open('room', NEW), 1, 0, 1 << 20) or 'yes'",
    "hide its open files from its own user": """
    libc.prctl(4, 0, 0, 0, 0)
    try:
        return 'yes' if libc.prctl(3, 0, 0, 0, 0) == 0 else 'denied'
    finally:
        libc.prctl(4, 1, 0, 0, 0)
""",
    "make a folder that cannot be listed": "os.mkdir('shut', 0o300) or 'yes'",
    "make a folder that cannot be entered": "os.mkdir('locked', 0o600, dir_fd=os.open('.', os.O_RDONLY)) or 'yes'",
    "mask the owner's rights to what is made": """
    os.umask(0o777)
    try:
        os.mkdir('masked')
    finally:
        os.umask(0o022)
    return 'denied' if os.stat('masked').st_mode & 0o700 == 0o700 else 'yes'
""",
})  # fmt: skip

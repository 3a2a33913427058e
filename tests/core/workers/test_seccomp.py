"""Seccomp program, instruction by instruction."""

from __future__ import annotations

import errno
import itertools
import re
import struct
from pathlib import Path

import pytest
from programs import python

from healkit.core.workers.inside import seccomp

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(program: bytes, number: int, *args: int, arch: int) -> int:
    """Return the kernel's answer, from a tiny machine for the instructions the filter uses."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*args, *[0] * (6 - len(args))))
    code = list(struct.iter_unpack("<HBBI", program))
    position = accumulator = 0
    while True:
        op, if_true, if_false, value = code[position]
        position += 1
        match op:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x06:
                return value
            case 0x15 | 0x35 | 0x45:
                holds = {
                    0x15: accumulator == value,
                    0x35: accumulator >= value,
                    0x45: bool(accumulator & value),
                }[op]
                position += if_true if holds else if_false


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_denied_call_is_refused_and_ordinary_ones_are_not(machine: str) -> None:
    program = seccomp.build_filter(4242, machine)
    column = 0 if machine == "x86_64" else 1
    for name, numbers in seccomp.DENIED.items():
        if (number := numbers[column]) is not None:
            expected = errno.EACCES if name in {"socket", "connect", "bind", "listen"} else errno.EPERM
            assert verdict(program, number, arch=ARCH[machine]) == ERRNO | expected, name
    others = {errno.ENOSYS: seccomp.ABSENT, errno.EOPNOTSUPP: seccomp.UNSUPPORTED, 0: seccomp.PRETENDED}
    for error, table in others.items():
        for name, numbers in table.items():
            if (number := numbers[column]) is not None:
                assert verdict(program, number, arch=ARCH[machine]) == ERRNO | error, name
    # read write close mmap futex
    ordinary = {"x86_64": (0, 1, 3, 9, 202), "aarch64": (63, 64, 57, 222, 98)}[machine]
    assert all(verdict(program, number, arch=ARCH[machine]) == ALLOW for number in ordinary)


@pytest.mark.requirement("WORK-2")
def test_a_call_of_another_architecture_kills_the_process() -> None:
    program = seccomp.build_filter(4242, "x86_64")
    assert verdict(program, 1, arch=0x40000003) == KILL  # i386


@pytest.mark.requirement("WORK-2")
def test_x32_numbers_and_calls_newer_than_the_table_do_not_exist() -> None:
    program = seccomp.build_filter(4242, "x86_64")
    for number in (463, 1000, 0x40000000 | 41):
        assert verdict(program, number, arch=ARCH["x86_64"]) == ERRNO | errno.ENOSYS


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize(
    ("what", "number", "args", "allowed"),
    [
        ("a thread", 56, (0x00010000 | 0x100,), True),
        ("a process", 56, (17,), False),
        ("a signal to itself", 62, (4242, 9), True),
        ("a signal to its parent", 62, (1, 9), False),
        ("a signal to its group", 62, (0, 9), False),
        ("its own limits", 302, (0, 9), True),
        ("another's limits", 302, (77, 9), False),
        ("a stream pair", 53, (1, 1 | 0o2000000), True),
        ("a datagram pair", 53, (1, 2), False),
        ("a network pair", 53, (2, 1), False),
        ("opening to read", 257, (0, 0, 0o2000000, 0), True),
        ("making a file", 257, (0, 0, 0o1101, 0o644), True),
        ("making a set-user-id file", 257, (0, 0, 0o101, 0o4755), False),
        ("cutting off a file that is opened to read", 2, (0, 0o1000), False),
        ("cutting off a file that is opened to write", 2, (0, 0o1001), True),
        ("making a file set-user-id by creat", 85, (0, 0o2755), False),
        ("making a file by creat", 85, (0, 0o644), True),
        ("typing into the terminal", 16, (0, 0x5412), False),
        ("asking the terminal's size", 16, (0, 0x5413), True),
        ("copying a file by reference", 16, (0, 0x40049409), True),
        ("setting a file's flags", 16, (0, 0x40086602), False),
        ("having signals sent by a socket", 16, (0, 0x8901), False),
        ("having signals sent by the kernel", 72, (3, 8, 77), False),
        ("having signals sent by the kernel, the new way", 72, (3, 15), False),
        ("a lease that others wait for", 72, (3, 1024), False),
        ("watching a folder by signals", 72, (3, 1026), False),
        ("a larger pipe", 72, (3, 1031, 1 << 20), False),
        ("not blocking", 72, (3, 4, 0o4000), True),
        ("a larger send buffer", 54, (3, 1, 7), False),
        ("a larger receive buffer", 54, (3, 1, 8), False),
        ("a larger send buffer by force", 54, (3, 1, 32), False),
        ("a larger receive buffer by force", 54, (3, 1, 33), False),
        ("a socket's address to be used again", 54, (3, 1, 2), True),
        ("an option of TCP with the number of a buffer's", 54, (3, 6, 7), True),
        ("a folder of one's own", 83, (0, 0o700), True),
        ("a folder for all", 258, (0, 0, 0o777), True),
        ("a folder that its owner cannot list", 83, (0, 0o300), False),
        ("a folder that its owner cannot enter", 258, (0, 0, 0o600), False),
        ("room within a file's size", 285, (3, 0, 0, 1 << 20), True),
        ("room beyond a file's end", 285, (3, 1, 0, 1 << 40), False),
        ("hiding from its own user", 157, (4, 0), False),
        ("a mask for others", 95, (0o077,), True),
        ("a mask that takes rights from the owner", 95, (0o400,), False),
        ("asking for a lock", 72, (3, 5), True),
        ("a lock of an open file", 72, (3, 37), False),
        ("rewriting its memory map", 157, (35, 1), False),
        ("outliving its parent", 157, (1, 0), False),
        ("naming its thread", 157, (15, 0), True),
    ],
)
def test_arguments_decide_where_the_number_does_not(
    what: str, number: int, args: tuple[int, ...], allowed: bool
) -> None:
    """S7: socket pairs with larger buffers held 1.5 GB of the kernel's memory, and pipes all that the user may have."""
    program = seccomp.build_filter(4242, "x86_64")
    assert (verdict(program, number, *args, arch=ARCH["x86_64"]) == ALLOW) is allowed, what


@pytest.mark.requirement("WORK-2")
@pytest.mark.parametrize("command", [6, 7])
def test_locks_are_real_only_where_others_may_have_the_file(command: int) -> None:
    """S7: a million locks of single bytes held 190 MB of the kernel's memory, and no limit ended that."""
    alone, shared = (seccomp.build_filter(4242, "x86_64", shares_files=shares) for shares in (False, True))
    assert verdict(alone, 72, 3, command, arch=ARCH["x86_64"]) == ERRNO | 0
    assert verdict(shared, 72, 3, command, arch=ARCH["x86_64"]) == ALLOW


def test_an_unknown_architecture_is_an_error_and_not_an_empty_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        seccomp.build_filter(1, "riscv64")


HEADERS = {
    0: (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"#define __NR_(\w+)\s+(\d+)"),
    1: (Path("/usr/include/asm-generic/unistd.h"), r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}


@pytest.mark.parametrize("column", [0, 1])
def test_the_numbers_are_those_of_the_kernels_headers(column: int) -> None:
    header, pattern = HEADERS[column]
    if not header.exists():
        pytest.skip(f"{header} is not installed (apt-get install linux-libc-dev)")
    known = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
    ours = {**seccomp.DENIED, **seccomp.ABSENT, **seccomp.UNSUPPORTED, **seccomp.PRETENDED}
    wrong = {n: (v[column], known[n]) for n, v in ours.items() if n in known and v[column] != known[n]}
    assert not wrong
    assert sum(name in known for name in ours) > 70


@pytest.mark.slow
@pytest.mark.requirement("WORK-6")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filters_of_a_forking_parent_and_its_child_add_up_to_the_whole_one(machine: str) -> None:
    """Compare them for every call and its arguments: the kernel takes the strictest of several answers."""
    whole = seccomp.build_filter(4242, machine)
    halves = (seccomp.build_parent_filter(machine), seccomp.build_child_filter(4242, machine))
    looked_into = {2, 16, 53, 54, 56, 62, 72, 83, 85, 95, 157, 203, 234, 257, 258, 285, 302}
    looked_into |= {29, 199, 220, 129, 25, 167, 122, 131, 56, 261, 208, 34, 166, 47}
    words = (0, 1, 2, 8, 17, 0o700, 1031, 35, 4242, 0o1000, 0o4755, 0x00010000, 0x5412, 0x5413)
    for number in range(470):
        for first, second in itertools.product(words if number in looked_into else (0,), repeat=2):
            for third in (0, 7, 0o4755):
                args = (first, second, third, third)
                answers = [verdict(half, number, *args, arch=ARCH[machine]) for half in halves]
                refusals = [answer for answer in answers if answer != ALLOW] or [ALLOW]
                assert verdict(whole, number, *args, arch=ARCH[machine]) in refusals, (number, args)


@pytest.mark.requirement("WORK-6")
def test_a_parent_may_fork_and_signal_its_children_and_little_else() -> None:
    parent = seccomp.build_parent_filter("x86_64")
    assert verdict(parent, 56, 17, arch=ARCH["x86_64"]) == ALLOW
    assert verdict(parent, 62, 77, 9, arch=ARCH["x86_64"]) == ALLOW
    assert verdict(parent, 59, arch=ARCH["x86_64"]) == ERRNO | errno.EPERM  # execve
    assert verdict(parent, 41, 2, arch=ARCH["x86_64"]) == ERRNO | errno.EACCES  # socket


#: libzmq starts its threads with the first socket; each asks for the scheduling that it has.
SOCKETS_AFTER_THE_FILTER = """
import os, zmq
from healkit.core.workers.inside import seccomp
seccomp.load_filter(seccomp.build_filter(os.getpid()))
context = zmq.Context()
first, second = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
first.bind("inproc://here")
second.connect("inproc://here")
first.send(b"hello")
print(second.recv().decode())
"""


@pytest.mark.requirement("WORK-4")
def test_zmq_threads_that_start_under_the_filter_do_not_abort_the_worker() -> None:
    done = python(SOCKETS_AFTER_THE_FILTER)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


@pytest.mark.parametrize("shares_files", [False, True])
def test_a_filter_that_is_built_once_is_each_processs_own(shares_files: bool) -> None:
    # With a backslash among its bytes, one worker of a thousand got no filter, and so was ended.
    with_backslashes = (ord("\\") + 256 * low for low in range(256))
    for pid in (1, 4242, 2**22, *with_backslashes):
        whole = seccomp.build_filter(pid, shares_files=shares_files)
        assert seccomp.filter_for(pid, shares_files=shares_files) == whole

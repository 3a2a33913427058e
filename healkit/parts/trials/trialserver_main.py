"""Trial server: locked down once, then forked per trial.

`python -m healkit.parts.trials.trialserver_main`. It has one thread and runs no tool. It enters the sandbox and reports
that. Then, for each piece of work, it forks a child that seals itself, runs the code and answers through a pipe. When
the child has ended, or was killed at its deadline, the trial server empties the scratch folder and reports to the host.
A trial shares with the one before it only the pages that it has not written to. A batch is many variants of one code
for one child (`trials.batch`).

Trials that come in one message have one pure code (`trials.pure_code`). They run in one child, one after the other,
because a fork takes ten times as long as they do. Each has a fresh module, its own arguments and the limits that it
would have alone. Only a quick success is taken from there: a trial that fails, takes long or ends the child runs again
alone. A child that dies loses no earlier result, and its unstarted trials go back to the host. It has the inputs of all
its trials; those of other codes are not read before their turn.

A trial server starts with few modules, because every fork copies them, and `threading` or `logging` would reset their
locks in each child. Modules of the standard library that a code names are imported in the trial server, once. All
others are imported in the child, except those with which the server was started (`workers.process`). No other code than
that and Python's own runs in a trial server.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import linecache
import os
import re
import select
import signal
import socket
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import msgspec

from healkit.core.contracts import rpc
from healkit.core.contracts.tools import EntryRef
from healkit.core.wire import framing
from healkit.core.workers.inside import lockdown, seccomp
from healkit.core.workers.inside.capture import TOOL_MODULE, PlainStream
from healkit.core.workers.inside.cleanup import empty_folder
from healkit.core.workers.inside.tool_runner import Compiled, ToolRunner
from healkit.parts.trials.messages import Results, Share, TrialDone, Unsealed

if TYPE_CHECKING:
    from healkit.parts.trials.batch import BatchServer


PRELOAD_VARIABLE = "HEALKIT_PRELOAD"
_READ_BYTES = 1 << 16
_decode = msgspec.json.Decoder(Share).decode
_CRASH_BYTES = 64 * 1024
#: Longest code that is compiled in the trial server; a longer one costs its own child the time and the memory.
_COMPILED_MAX_CHARS = 100_000
#: Room in a claim beyond the result: conversions, a traceback.
_CLAIM_EXTRA_BYTES = 1 << 20


class TrialLoop:
    """Loop of the parent: take work, fork a child, report its end."""

    def __init__(self, restrictions: lockdown.Restrictions, bridge: socket.socket) -> None:
        self.restrictions = restrictions
        self.bridge = bridge
        self.printed = os.memfd_create("printed")
        self.nowhere = os.open(os.devnull, os.O_WRONLY)
        self.filter: seccomp.ChildFilter | None = None
        self.clean = True
        # Made once for all children: a child copies only the pages that it writes to.
        self.stream = PlainStream()
        self.runner = _runner()
        #: What the last trial ran, what it is compiled to, and whether that is still to be tried.
        self.last: object = None
        self.work: Compiled | None = None
        self.untried = False
        #: Above 0 while it pays to run trials of the last code together: each one that succeeds adds to it.
        self.credit = 0.0

    def seal(self) -> str:
        """Restrict this process, so that its children need not do it one by one; returns the applied layers."""
        if self.restrictions.tier == "process":
            return "none"
        seccomp.load_filter(seccomp.build_parent_filter())
        self.filter = seccomp.ChildFilter()
        return "filter, and more in each trial"

    def prepare(self) -> None:
        """Do once what each child would otherwise repeat; the last step before `serve`."""
        faulthandler.enable(file=2)  # the child's own, by then
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
        rehearse()
        gc.collect()
        gc.freeze()

    def serve(self) -> None:
        """Serve until the host hangs up."""
        batch: BatchServer | None = None
        # Read no byte of the next frame: a child must not see it.
        frames = framing.FrameReader(self.bridge, ahead=False)
        while (frame := frames.read()) is not None:
            work = _decode(frame)
            for results in self.try_all(work.trials):
                self.send(results)
                if not self.clean:  # the next trial would find what one has left that cannot be removed
                    return
            if work.batch is not None:
                # Late: these modules import `random`, which seeds itself anew in each fork.
                from healkit.parts.trials.batch import BatchServer

                preimport(work.batch.code)
                batch = BatchServer(work.batch, self.become_many, self.send, self.restrictions.scratch)
            if batch is not None and work.candidates:
                batch.share(work)

    def send(self, message: msgspec.Struct) -> None:
        """Send one message to the host."""
        self.bridge.sendall(framing.encode_frame(message))

    def try_all(self, trials: Sequence[rpc.Init]) -> Iterator[Results]:
        """Run the trials of one message, together if possible, and yield the results in order."""
        for position, init in enumerate(trials):
            rest = trials[position:]
            if self.may_run_together(rest):
                ends, again = self.try_together(rest)
                back = len(rest) - len(ends) - again
                if ends or back:  # what follows a slow one can be run elsewhere meanwhile
                    yield Results(trials=ends, back=back, last=not self.clean)
                if again and self.clean:
                    yield Results(trials=[self.try_one(rest[len(ends)])], last=not self.clean)
                return
            yield Results(trials=[self.try_one(init)], last=not self.clean)

    def may_run_together(self, trials: Sequence[rpc.Init]) -> bool:
        """Return whether trials of one code should share a child; one must first show that the code compiles."""
        return (
            len(trials) > 1
            and self.credit > 0
            and _key(trials[0]) == self.last
            and self.compiled(trials[0]) is not None
        )

    def try_together(self, trials: Sequence[rpc.Init]) -> tuple[list[TrialDone], bool]:
        """Run trials in one child; return those that succeeded, and whether the next one must run alone."""
        preimport(trials[0].code)
        self.runner.compiled = self.work
        quick = [msgspec.structs.replace(init, timeout_s=min(init.timeout_s, _QUICK_S)) for init in trials]
        status, claims, timed_out = self._child(quick, _TOGETHER_S + _QUICK_S + _GRACE_S)
        ends, at, before = list[TrialDone](), 0, 0
        size = os.fstat(self.printed).st_size
        while claims and len(ends) < len(trials) and len(claims) >= at + _HEAD.size:
            claim_bytes, printed_bytes, took_us = _HEAD.unpack_from(claims, at)
            at += _HEAD.size + claim_bytes
            if not claim_bytes or at > len(claims):
                break
            end = min(max(printed_bytes, before), size)
            start = max(before, end - _CRASH_BYTES)
            printed = os.pread(self.printed, end - start, start) if end > start else b""
            ends.append(TrialDone(0, claims[at - claim_bytes : at], printed, duration_ms=took_us / 1000))
            before = end
        self.credit = min(_CREDIT, self.credit + len(ends) - _CREDIT / 2)
        return ends, len(ends) < len(trials) and (status != 0 or timed_out or not ends)

    def try_one(self, init: rpc.Init) -> TrialDone:
        """Run one trial, from the fork to the emptied folder."""
        preimport(f"{init.setup}\n{init.code}" if init.setup else init.code)
        self.runner.compiled = self.compiled(init)
        self.credit += _ALONE
        began = time.monotonic()
        status, claim, timed_out = self._child([init], init.timeout_s + _GRACE_S)
        took_ms = (time.monotonic() - began) * 1000
        size = os.fstat(self.printed).st_size
        printed = os.pread(self.printed, _CRASH_BYTES, max(0, size - _CRASH_BYTES)) if size else b""
        return TrialDone(status, claim or b"", printed, "timeout" if timed_out else "", duration_ms=took_ms)

    def _child(self, trials: Sequence[rpc.Init], limit_s: float) -> tuple[int, bytes | None, bool]:
        """Run one child to its end; return its status, its output (None: too much), and whether its time was up."""
        reading, writing = os.pipe()
        os.ftruncate(self.printed, 0)
        os.lseek(self.printed, 0, os.SEEK_SET)
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self.become(trials, writing)
        os.close(writing)
        deadline = time.monotonic() + limit_s
        most = trials[0].result_max_bytes + _CLAIM_EXTRA_BYTES
        claim, timed_out = _read_claim(reading, most, deadline)
        os.close(reading)
        if claim == b"" and not timed_out:
            timed_out = not _ends(pid, deadline)
        if timed_out:
            os.kill(pid, signal.SIGUSR1)  # faulthandler's, which speaks even for a hang in C code
            time.sleep(_DUMP_S)
        if timed_out or claim is None:
            os.kill(pid, signal.SIGKILL)
        if timed_out or not claim:
            self.untried = False  # what ended it may be its compiling
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.clean = empty_folder(self.restrictions.scratch)
        return status, claim, timed_out

    def compiled(self, init: rpc.Init) -> Compiled | None:
        """Compile here code that several trials in a row run, so that they need not do it.

        The first of them compiles it within its own time, so no code can block this process. Code that does not
        compile, or only with a warning, is left to each child, which reports it.
        """
        key = _key(init)
        if key != self.last:
            self.last, self.work, self.untried = key, None, True
            self.credit = _CREDIT
        elif self.untried:
            self.untried = False
            if len(init.code) + len(init.setup) + len(init.call) <= _COMPILED_MAX_CHARS:
                with warnings.catch_warnings(), contextlib.suppress(Exception):
                    warnings.simplefilter("error")
                    self.work = Compiled.of(init)
        return self.work

    def become(self, trials: Sequence[rpc.Init], writing: int) -> NoReturn:
        """Live as the child of one trial, or of some: the code is called from the same depth in both cases."""
        try:
            self._give_up(self.printed)
            os.close(self.bridge.fileno())  # the trial server's; a trial may call nothing
            if (numbers := sys.modules.get("numpy.random")) is not None:
                numbers.seed()  # `random` reseeds itself after a fork
            sys.stdout = sys.stderr = self.stream
            kept, sent_bytes, until = list[object](), 0, time.perf_counter() + _TOGETHER_S
            for init in trials:
                began = time.perf_counter()
                complete = self.runner.complete(init)
                took_s = time.perf_counter() - began
                claim = msgspec.json.encode(complete)
                size = os.fstat(self.printed).st_size if len(trials) > 1 else 0
                if len(trials) > 1:
                    if complete.failure is not None or took_s >= init.timeout_s:
                        claim = b""
                    claim = _HEAD.pack(len(claim), size, int(took_s * 1e6)) + claim
                view = memoryview(claim)
                while view:
                    view = view[os.write(writing, view) :]
                sent_bytes += len(claim)
                if (
                    len(claim) == _HEAD.size
                    or sent_bytes + size > _TOGETHER_BYTES
                    or time.perf_counter() > until
                ):
                    break
                self._renew(kept)
        except BaseException:  # noqa: BLE001 - the last thing this process can do is to say why
            sys.__excepthook__(*sys.exc_info())
        finally:
            os._exit(0)

    def _renew(self, kept: list[object]) -> None:
        """Restore the state that the first trial found, as far as pure code can change it."""
        kept.append(sys.modules.pop(TOOL_MODULE, None))  # nothing of it is finalized during another trial
        gc.freeze()
        sys.stdout = sys.stderr = self.stream
        if (numbers := sys.modules.get("random")) is not None:
            numbers.seed()
        self.runner.limited = False
        lockdown.limit_again()

    def become_many(self, run: Callable[[], None]) -> NoReturn:
        """Live as a batch's child, which answers through memory."""
        try:
            self._give_up(self.nowhere)
            self.bridge.close()
            run()
        finally:
            os._exit(0)

    def _give_up(self, output: int) -> None:
        """Redirect the output, die with the trial server, and seal this process; first in every child."""
        for standard in (1, 2):
            os.dup2(output, standard)
        lockdown.die_with_parent()
        if self.restrictions.tier != "process" and (reason := self._seal()):
            self.send(Unsealed(reason))
            os._exit(1)

    def _seal(self) -> str:
        """Load this child's own filter and test it; returns why it is not active."""
        if self.filter is None:
            return "there is none"
        try:
            self.filter.load()
        except OSError as error:
            return str(error)
        try:
            os.kill(os.getppid(), 0)
        except PermissionError:
            return ""
        return "it does not deny signals"


def _runner(*, limited: bool = True) -> ToolRunner:
    """Return a runner whose bridge is closed: a trial has nothing to call."""
    ours, theirs = socket.socketpair()
    theirs.close()
    runner = ToolRunner(ours, crash_fd=2, dump=False, limited=limited)
    runner.endpoint.close()
    return runner


def rehearse() -> None:
    """Run healkit code until Python has adapted its instructions and filled its tables.

    Python adapts instructions that run often in place, and fills tables on first use. If a child did so itself, it
    would have to copy these pages, which is most of the cost of a trial.
    """
    runner = _runner(limited=False)
    entry = EntryRef("rehearsal", "default", 0, "")
    for code in (_RETURNING, _RAISING) * _REHEARSALS:
        msgspec.json.encode(runner.complete(_work(entry, code)))
    sys.modules.pop(TOOL_MODULE, None)
    linecache.cache.pop(entry.filename, None)


def _work(entry: EntryRef, code: str) -> rpc.Init:
    return rpc.Init(entry, code, msgspec.Raw(b'{"n": [1]}'), [], 10.0, 1.0, 0, 0, 1000, 1000)


#: Rounds of both. Python 3.11 adapts a function at its eighth call; more rounds than these gain nothing.
_REHEARSALS = 6
_RETURNING = "def rehearsal(n: list):\n    return {'a': n, 'b': 1.5}\n"
_RAISING = "def rehearsal(n: list):\n    return n + missing\n"

_GRACE_S = 0.3
#: Limits of trials that share a child: of each, and the time and the size of what it tells after which it begins none.
_QUICK_S, _TOGETHER_S, _TOGETHER_BYTES = 0.1, 0.08, 256 * 1024
#: Most credit of a code, of which a shared child takes half; what a trial by itself adds.
_CREDIT, _ALONE = 8.0, 0.25
#: Before each claim of a shared child: its size, that of all that was printed so far, and its time in µs.
_HEAD = struct.Struct("=QQQ")


def _key(init: rpc.Init) -> tuple[object, ...]:
    """Return what trials of the same code have in common."""
    return init.entry, init.code, init.setup, init.call


#: Pause between looks at a child that has closed its descriptors and not ended yet.
_TICK_S = 0.0005
#: Time for faulthandler to write a stack; it needs well under a millisecond.
_DUMP_S = 0.02


def _read_claim(reading: int, limit: int, deadline: float) -> tuple[bytes | None, bool]:
    """Read the complete output of the child, and whether time ran out; None if it wrote too much."""
    received = bytearray()
    while (left_s := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([reading], [], [], left_s)
        if not ready:
            break
        chunk = os.read(reading, _READ_BYTES)
        if not chunk:
            return bytes(received), False
        received += chunk
        if len(received) > limit:
            return None, False
    return bytes(received), True


def _ends(pid: int, deadline: float) -> bool:
    """Return whether a silent child ends in time; code can close its end of the pipe and keep running."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_TICK_S)
    return True


# Imports done ahead of the children.


#: Modules of the standard library that act when imported, or need a screen.
_LOUD = {"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "readline", "curses"}
#: Parts of a package that are programs or tests.
_PROGRAMS = {"__main__", "test", "tests"}
#: Import statement; a false match inside a string does no harm.
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)", re.MULTILINE
)
_ASYNC = re.compile(r"\basync[ \t]")
#: Names tried so far; each is tried once.
_tried: set[str] = set()


def preimport(code: str) -> None:
    """Import here the modules of the standard library that the code names, so that not every child has to."""
    if "import" not in code and "async" not in code:
        return
    missing = [name for name in _named(code) - _tried if name not in sys.modules and _harmless(name)]
    _tried.update(missing)
    for name in missing:
        # The child meets the same error, and reports it.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    if missing:
        gc.collect()
        gc.freeze()


def _named(code: str) -> set[str]:
    """Return the modules that the code imports, as far as can be told without parsing it."""
    names = {"asyncio"} if _ASYNC.search(code) else set()
    for listed, source in _IMPORT.findall(code):
        names |= {part.split()[0] for part in f"{listed},{source}".split(",") if part.strip()}
    return names


def _harmless(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in sys.stdlib_module_names and not _PROGRAMS & {*parts} and parts[0] not in _LOUD


def _read_no_maps() -> None:
    """Let threadpoolctl ask the C library which libraries are loaded; scikit-learn uses it.

    It reads `/proc/self/maps`. The sandbox allows only the server's own file, not that of a fork.
    """
    if (threadpoolctl := sys.modules.get("threadpoolctl")) is not None:
        threadpoolctl.__dict__["_HAS_PROCFS"] = False


def main() -> None:
    """Lock down, preload, serve."""
    restrictions = msgspec.json.decode(
        os.environ.pop(lockdown.RESTRICTIONS_VARIABLE), type=lockdown.Restrictions
    )
    layers = lockdown.enter(restrictions)
    for name in filter(None, os.environ.pop(PRELOAD_VARIABLE, "").split(",")):
        try:
            importlib.import_module(name)
        except ImportError:  # a trial that needs it reports the error
            continue
    _read_no_maps()
    bridge = socket.socket(fileno=restrictions.bridge_fd)
    os.set_inheritable(restrictions.bridge_fd, False)
    loop = TrialLoop(restrictions, bridge)
    layers |= {"seccomp": lockdown.done_or_failed(loop.seal)}
    loop.prepare()
    bridge.sendall(framing.encode_frame(rpc.Ready(os.getpid(), layers)))
    loop.serve()


if __name__ == "__main__":
    main()

"""Capture of a tool's output and exceptions; time limits.

Tracebacks are reduced to frames of the tool and of the libraries that it called.

An alarm signal raises `TimeIsUp` in running Python code. A hang in C code does not react to it. For that case,
`faulthandler` dumps the stack to the crash file, from its own thread, before the host kills the process.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the built-in module behind `signal` has no stubs
import contextlib
import errno
import faulthandler
import importlib
import io
import itertools
import linecache
import os
import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, ClassVar

import msgspec

from healkit.core.contracts.cassette import NOT_ON_RECORD_HINT
from healkit.core.contracts.failure import FACT_MAX_CHARS, FRAMES_MAX, SECRETS_MAX, Failure, Frame, Link
from healkit.core.contracts.tools import EntryRef
from healkit.core.pysource.tracebacks import (
    format_frames,
    linked_to,
    message_of,
    read_traceback,
    traceback_of,
    traceback_text,
)
from healkit.core.wire.encoding import encodable, int_text
from healkit.package import FOLDER

#: Folders of healkit and the kernel, whose frames do not help a tool's author.
_OWN_FOLDER = os.path.join(FOLDER, "")
_OWN_PARTS = (f"{os.sep}ipykernel{os.sep}", f"{os.sep}IPython{os.sep}core{os.sep}interactiveshell.py")
#: Variable with the modules that read facts about a failure (`hooks.Specs.observers`), separated by commas.
OBSERVERS_VARIABLE = "HEALKIT_OBSERVERS"
#: Names of those modules; taken from the environment before any tool runs.
observers = [name for name in os.environ.pop(OBSERVERS_VARIABLE, "").split(",") if name]
#: Variable with the module that answers questions about a failure (`hooks.Specs.inspector`), and that module.
INSPECTOR_VARIABLE = "HEALKIT_INSPECTOR"
inspector = os.environ.pop(INSPECTOR_VARIABLE, "")
#: Module name of a tool's code, in `sys.modules` because dataclasses look their module up there.
TOOL_MODULE = "__healkit_tool__"
_TRACEBACK_MAX_CHARS = 200_000
_MESSAGE_MAX_CHARS = 10_000
_NAME_MAX_CHARS = 500
_LAST_WORDS_CHARS = 4000
#: Number of innermost frames whose variables are searched for secrets in the failure's texts.
_SECRET_FRAMES = 50
_DESCRIBE_S = 0.5
#: Address in a repr, which differs in each run and so is not part of a value.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
#: Maximum time to read an exception's message or traceback, and to read linked exceptions, in seconds.
_TEXT_S, _LINKED_S = 2.0, 1.0


OVER_LIMIT = "the tool printed more than it may; what came after the limit is dropped"


#: Minimum number of characters that a write counts: many `print("x")` take a minute to reach 10 MB, and would
#: reach the timeout first.
_WRITE_CHARS = 16


class OutputLimit(Exception):
    """Output above the tool's limit."""

    __module__ = "builtins"  # so that a traceback shows the short name


class NotOnRecord(BaseException):
    """A call without a recorded answer, or a withheld file; it ends the run and passes most exception handlers."""

    __module__ = "builtins"


class Output:
    """Output budget that stdout and stderr share, and the end of their output; one for each process.

    Output that C code writes to a descriptor may arrive on a thread. The thread must continue reading, or the tool
    would block on a full pipe. Such a stream drops text above the budget, and `exceeded` informs the runner.
    """

    left_chars: ClassVar[int | None] = None
    exceeded: ClassVar[bool] = False
    #: Whether anything was written or displayed.
    shown: ClassVar[bool] = False
    #: A crash loses text that is still in a buffer, so the end of each write goes here at once.
    crash_fd: ClassVar[int | None] = None

    @classmethod
    def admit(cls, text: str) -> bool:
        """Return whether there is room for the text, and subtract it from the budget."""
        cls.shown = True
        if cls.left_chars is not None:
            cls.left_chars -= max(len(text), _WRITE_CHARS)
            if cls.left_chars < 0:
                cls.exceeded = True
                return False
        return True

    @classmethod
    def remember(cls, text: str, limit: int = _LAST_WORDS_CHARS) -> None:
        """Write the end of a text where the host finds it even if this process crashes."""
        if cls.crash_fd is not None:
            os.write(cls.crash_fd, text[-limit:].encode(errors="backslashreplace"))


class PlainStream(io.TextIOBase):
    """Stream for stdout and stderr together, directly to the file that the host reads."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Write at once; called by print. Above the budget, it raises `OutputLimit`."""
        if not Output.admit(text):
            raise OutputLimit(OVER_LIMIT)
        Output.remember(text, limit=len(text))
        return len(text)

    def writable(self) -> bool:
        """Return True; called by io."""
        return True

    def fileno(self) -> int:
        """Return its descriptor, for code that bypasses Python's streams."""
        return 1


def show_source(entry: EntryRef, code: str) -> None:
    """Let tracebacks find the tool's source lines under its label; call it before the code is compiled."""
    lines = code.splitlines(keepends=True)
    linecache.cache[entry.filename] = (len(code), None, lines, entry.filename)


def describe(value: object) -> str:
    """Return `repr(value)` without addresses, in at most half a second and 2,000 characters; never raises."""
    if type(value) is int:
        return int_text(value)
    try:
        with deadline(_DESCRIBE_S):
            text = repr(value)
    except TimeIsUp:
        return f"<{type(value).__qualname__} object, its repr takes too long>"
    except BaseException as error:  # noqa: BLE001 - a foreign __repr__ may raise anything
        return f"<{type(value).__qualname__} object, its repr raises {type(error).__name__}>"
    return _ADDRESS.sub("", text) if len(text) <= 2000 else f"{text[:2000]}… [{len(text):,} characters]"


def to_failure(error: BaseException, entry: EntryRef, timeout_s: float) -> Failure:
    """Return the exception as data, without our own frames; never raises, even for a hostile exception."""
    failure = _told(error, entry.filename)
    code, hint = _classify(error, timeout_s, failure.facts)
    if isinstance(error, TimeIsUp):
        message = f"still running after {timeout_s:g} s"
        text = f"{failure.traceback.rpartition(chr(10))[0]}\nTimeoutError: {message}".lstrip()
        failure = msgspec.structs.replace(failure, ename="TimeoutError", evalue=message, traceback=text)
    give_up = time.monotonic() + _LINKED_S
    linked = [
        msgspec.structs.replace(_told(linked_error, entry.filename), traceback="", link=link)
        for link, linked_error in _linked_to(error)
        if time.monotonic() < give_up
    ]
    failure = msgspec.structs.replace(failure, code=code, hint=hint, linked=linked)
    secrets = _secrets([error, *(linked_error for _, linked_error in _linked_to(error))])
    return msgspec.structs.replace(failure, secrets=secrets) if secrets else failure


def _secrets(errors: Sequence[BaseException]) -> list[tuple[str, str]]:
    """Return the secrets in the variables of the failure's frames; the host keeps those that occur in its texts."""
    from healkit.core.secrets.secret_names import named_secrets  # late, because most tools do not fail

    try:
        entries = (frame for error in errors for frame, _ in traceback.walk_tb(traceback_of(error)))
        tool_frames = [frame for frame in entries if not is_own(frame.f_code.co_filename)]
        spaces = [frame.f_locals for frame in tool_frames[-_SECRET_FRAMES:]]
        spaces += [
            frame.f_globals for frame in tool_frames if frame.f_globals.get("__name__") == TOOL_MODULE
        ][:1]
        return list(itertools.islice(named_secrets(spaces), SECRETS_MAX))
    except Exception:  # noqa: BLE001 - another thread may change a namespace; the failure is still reported
        return []


def _told(error: BaseException, tool_filename: str) -> Failure:
    """Return type, message, stack and facts of one exception; if one part cannot be read, the others still are."""
    try:
        with deadline(_TEXT_S):
            message = message_of(error)
    except BaseException as trouble:  # noqa: BLE001 - its __str__ takes too long, or tries to end the process
        message = f"<no message: {type(trouble).__name__} while it was read>"
    try:
        with deadline(_TEXT_S):
            trace = read_traceback(error)
            _cut_own_frames(trace, set())
            text = traceback_text(trace, message).replace(f"{TOOL_MODULE}.", "")
            frames = [_frame(summary, tool_filename) for summary in trace.stack]
    except BaseException:  # noqa: BLE001 - a hostile exception, or no memory is left: the places are still known
        frames = list(_places(error, tool_filename))
        text = format_frames(frames, f"{_type_name(error)}: {message}")
    if isinstance(error, SyntaxError) and error.filename == tool_filename:
        frames.append(Frame(tool_filename, error.lineno or 1, "<module>", error.text or "", in_tool=True))
    near, existing_names, facts = _observed(error, tool_filename)
    if isinstance(error, OSError) and _starts_process(error, tool_filename):
        facts = {"about": "no_processes"}
    return Failure(
        code="TOOL_EXCEPTION",
        ename=safe(_type_name(error), _NAME_MAX_CHARS),
        evalue=safe(message, _MESSAGE_MAX_CHARS),
        traceback=safe(text.rstrip(), _TRACEBACK_MAX_CHARS),
        frames=_thin(frames),
        near=near,
        known=existing_names,
        facts=facts,
    )


def _linked_to(error: BaseException) -> list[tuple[Link, BaseException]]:
    try:
        return linked_to(error)
    except Exception:  # noqa: BLE001 - a hostile exception's own attributes
        return []


def _places(error: BaseException, tool_filename: str) -> Iterator[Frame]:
    """Yield the stack's frames; of the exception, only its traceback is read."""
    entry, remaining = traceback_of(error), FRAMES_MAX
    while entry is not None and remaining:
        code = entry.tb_frame.f_code
        if not is_own(code.co_filename):
            remaining -= 1
            line = (
                linecache.getline(code.co_filename, entry.tb_lineno)
                if code.co_filename == tool_filename
                else ""
            )
            summary = traceback.FrameSummary(
                code.co_filename, entry.tb_lineno, code.co_name, line=line.strip()
            )
            yield _frame(summary, tool_filename)
        entry = entry.tb_next


def _classify(error: BaseException, timeout_s: float, facts: dict[str, str]) -> tuple[str, str]:
    """Return the outcome's code and the next step, by the exception's type."""
    if isinstance(error, TimeIsUp):
        return (
            "TOOL_TIMEOUT",
            f"Give it more than {timeout_s:g} s (timeout=…), or look at the line where it was.",
        )
    if isinstance(error, NotOnRecord):
        return "CALL_NOT_ON_RECORD", NOT_ON_RECORD_HINT
    if isinstance(error, MemoryError):
        return "TOOL_OUT_OF_MEMORY", "Give it more memory (grant memory_mb=…), or let it hold less at once."
    if isinstance(error, OutputLimit):
        return (
            "TOOL_OUTPUT_LIMIT",
            "Let it print less, or return what matters; HEALKIT_RESULT_MAX_BYTES is the limit.",
        )
    if isinstance(error, OSError) and facts.get("about") == "no_processes":
        return (
            "TOOL_EXCEPTION",
            "Threads work: use ThreadPoolExecutor, or call what you need in this process.",
        )
    if isinstance(error, PermissionError):
        return "TOOL_EXCEPTION", (
            "A worker has no network, starts no process and sees only its scratch folder. Grant the tool a path "
            "(read=…, write=…), or let it call your function (hk.provide)."
        )
    if isinstance(error, FileNotFoundError):
        return (
            "TOOL_EXCEPTION",
            "If the file exists outside, the worker cannot see it: grant the tool that path (read=…).",
        )
    return "TOOL_EXCEPTION", ""


def _observed(error: BaseException, tool_filename: str) -> tuple[list[str], list[str], dict[str, str]]:
    """Return similar names for a missing one, existing names, and facts about the values."""
    try:  # here, because no worker's start should wait for it
        modules = [importlib.import_module(name) for name in observers]
    except Exception:  # noqa: BLE001 - the tool may have used up memory or open files, so that the import fails
        return [], [], {}
    innermost, entry = None, traceback_of(error)
    while entry is not None:
        innermost = entry if entry.tb_frame.f_code.co_filename == tool_filename else innermost
        entry = entry.tb_next
    try:
        with deadline(_DESCRIBE_S):
            suggested = [module.suggestions(error, innermost) for module in modules]
            near, existing_names = next(filter(any, suggested), ([], []))
            facts = {
                name: fact for module in modules for name, fact in module.observe(error, innermost).items()
            }
            return (
                [safe(name, 100) for name in near],
                [safe(name, 100) for name in existing_names],
                {name: safe(fact, FACT_MAX_CHARS) for name, fact in facts.items()},
            )
    except BaseException:  # noqa: BLE001 - it took too long, or the exception's own code tried to end the process
        return [], [], {}


_PROCESS_FILES = (
    f"{os.sep}multiprocessing{os.sep}", f"{os.sep}concurrent{os.sep}futures{os.sep}process.py",
    f"{os.sep}subprocess.py", f"{os.sep}joblib{os.sep}externals{os.sep}loky{os.sep}",
)  # fmt: skip
_PROCESS_CALLS = (
    "os.fork(",
    "os.forkpty(",
    "os.posix_spawn",
    "os.exec",
    "os.spawn",
    "os.popen(",
    "pty.spawn(",
)


def _starts_process(error: OSError, tool_filename: str) -> bool:
    """Return whether the code tried to start a process, which no worker may do."""
    if error.errno not in {errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSYS}:
        return False
    entry, line = traceback_of(error), ""
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        if any(part in name for part in _PROCESS_FILES):
            return True
        line = linecache.getline(name, entry.tb_lineno) if name == tool_filename else line
        entry = entry.tb_next
    return any(call in line for call in _PROCESS_CALLS)


def _cut_own_frames(exception: traceback.TracebackException, seen: set[int]) -> None:
    if id(exception) in seen:
        return
    seen.add(id(exception))
    exception.stack = traceback.StackSummary.from_list([f for f in exception.stack if not is_own(f.filename)])
    for linked in (exception.__cause__, exception.__context__, *(exception.exceptions or [])):
        if linked is not None:
            _cut_own_frames(linked, seen)


def is_own(filename: str) -> bool:
    """Return whether a file belongs to healkit or the kernel, so that its frames are left out."""
    return filename.startswith(_OWN_FOLDER) or any(part in filename for part in _OWN_PARTS)


def _frame(summary: traceback.FrameSummary, tool_filename: str) -> Frame:
    return Frame(
        filename=safe(summary.filename, 1000),
        lineno=summary.lineno or 0,
        name=safe(summary.name, 200),
        line=safe(summary.line or "", 500),
        in_tool=summary.filename == tool_filename,
    )


def _thin(frames: list[Frame]) -> list[Frame]:
    """Keep both ends of a stack that is too deep; the middle of a recursion only repeats."""
    half = FRAMES_MAX // 2
    return frames if len(frames) <= FRAMES_MAX else frames[:half] + frames[-half:]


def _type_name(error: BaseException) -> str:
    kind = type(error)
    plain = kind.__module__ in {"builtins", TOOL_MODULE}
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def safe(text: str, limit: int) -> str:
    """Return text that can be encoded, without its middle if it is longer than `limit` characters."""
    text = encodable(text)
    return (
        text
        if len(text) <= limit
        else f"{text[: limit // 2]}\n… [{len(text):,} characters]\n{text[-limit // 2 :]}"
    )


# Time limits that can stop Python code.


class TimeIsUp(BaseException):
    """End of a deadline. It does not derive from `Exception`, so that `except Exception` in a tool cannot catch it."""


#: The function below `signal.signal`, whose wrapper searches for an enumeration member of each handler and
#: took half of the time of setting a deadline. It only accepts plain numbers.
_set_handler, _ALARM, _DEFAULT = _signal.signal, int(signal.SIGALRM), int(signal.SIG_DFL)
#: Interval of repeated alarms, in seconds, for code that catches even BaseException.
_REPEAT_S = 0.05
#: The stack is only dumped if the alarm had no effect within this time, in seconds.
_DUMP_AFTER_S = 0.1


@contextlib.contextmanager
def deadline(timeout_s: float, crash_fd: int | None = None) -> Iterator[None]:
    """Raise `TimeIsUp` in the body after that time; main thread only. Deadlines nest: the outer one is restored."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsUp

    previous_handler = _set_handler(_ALARM, ring)
    remaining_s, repeat_s = signal.setitimer(signal.ITIMER_REAL, timeout_s, _REPEAT_S)
    if crash_fd is not None:
        faulthandler.dump_traceback_later(timeout_s + _DUMP_AFTER_S, exit=False, file=crash_fd)
    try:
        yield
    finally:
        _silence()
        if crash_fd is not None:
            faulthandler.cancel_dump_traceback_later()
        _set_handler(_ALARM, previous_handler or _DEFAULT)
        if remaining_s:
            signal.setitimer(signal.ITIMER_REAL, remaining_s, repeat_s)


def _silence() -> None:
    """Stop the alarm; a late one may raise during this very call."""
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            return
        except TimeIsUp:
            continue


#: Interval of checks whether the processor time is used up, and of alarms after that, in seconds.
_LOOK_S, _RING_AGAIN_S = 0.001, 0.01
#: Wall time for code that sleeps: this multiple of the limit, plus this many seconds.
_WAIT_TIMES, _WAIT_MORE_S = 3.0, 0.03
_setitimer, _signal, _CLOCK, _RUNG = signal.setitimer, signal.signal, signal.ITIMER_REAL, signal.SIGALRM
_computed_s, _now_s = time.process_time, time.monotonic


def _sleeps() -> int:
    """Return how often this thread has released the processor voluntarily, to sleep or to wait."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def waited_s(timeout_s: float) -> float:
    """Return the wall time of a check that sleeps, in seconds, for its limit of processor time."""
    return timeout_s * _WAIT_TIMES + _WAIT_MORE_S


class Alarm:
    """Raises `TimeIsUp` in the main thread, from `set` until `stop`; `rang` says whether it has."""

    def __init__(self) -> None:
        self.rang = False
        self._armed = False
        self._most_computed_s = self._latest_s = 0.0
        self._slept = 0

    def set(self, timeout_s: float) -> None:
        """Ring repeatedly after this much processor time, or a multiple of it in wall time if the code sleeps."""
        self.rang = False
        self._armed = True
        self._most_computed_s, self._latest_s = _computed_s() + timeout_s, _now_s() + waited_s(timeout_s)
        self._slept = _sleeps()
        _signal(_RUNG, self._ring)  # each time, because earlier code may have replaced the handler
        _setitimer(_CLOCK, timeout_s, _LOOK_S)

    def stop(self) -> None:
        """Stop the alarm; one that rings during this call raises `TimeIsUp` a last time."""
        self._armed = False
        _setitimer(_CLOCK, 0)

    def _ring(self, _number: int, _frame: FrameType | None) -> Any:
        if not self.rang:
            early = _now_s() < self._latest_s or _sleeps() == self._slept
            if early and _computed_s() < self._most_computed_s:
                return  # another process was using the processor
            self.rang = True
            _setitimer(_CLOCK, _RING_AGAIN_S, _RING_AGAIN_S)
        if self._armed:
            raise TimeIsUp

"""Batches in a trial server: many candidates a child.

A child is watched, and replaced if it ends early. A child may hang in C code, or swallow its alarms. It is killed if
its position in the buffer has not changed for longer than the check may take. If it has hardly computed in that time,
the machine is busy, and it gets more time. A child that crashes ends by itself. In both cases the batch continues in
another child after that check, whose result is `t` or `d`.

In a child, every check gets a fresh module namespace and freshly decoded arguments. Other things that a candidate can
change in the process are restored if that is cheap. They are the interpreter's settings, random numbers, builtins,
modules, environment, working directory and scratch folder. The rest (variables of imported modules, state of C code)
stays until this child ends, a fraction of a second later. Important results are validated as trials.

A child can write any letters it likes, but it harms only its own search: a winner is validated again, in trials.
"""

from __future__ import annotations

import _thread
import ast
import builtins
import copy
import gc
import mmap
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NoReturn

import msgspec

from healkit.core.contracts.cassette import Tape
from healkit.core.contracts.patches import Edit, apply_edits, same_value
from healkit.core.contracts.tools import Withheld
from healkit.core.crossing import values
from healkit.core.pysource.shapes import Shape, parse, read_shape
from healkit.core.wire.encoding import ValueTooLarge, is_beyond_json, to_jsonable, type_outline
from healkit.core.workers.inside import lockdown
from healkit.core.workers.inside.capture import (
    OVER_LIMIT,
    TOOL_MODULE,
    Alarm,
    Output,
    OutputLimit,
    PlainStream,
    TimeIsUp,
    describe,
    waited_s,
)
from healkit.core.workers.inside.cleanup import empty_folder
from healkit.core.workers.inside.proxies import FileWatch, RecordedEndpoint, Trace, build_servers
from healkit.core.workers.inside.tool_runner import (
    CELL_FLAGS,
    SETUP_FILENAME,
    Call,
    as_cell,
    awaited,
    call_entry,
    fresh_namespace,
    why_refused,
    with_awaited_calls,
)
from healkit.errors import HealkitError
from healkit.parts.trials.messages import (
    DIED,
    LETTERS,
    NOT_ON_RECORD,
    NOT_RUN,
    PASSED,
    RAISED,
    TIMED_OUT,
    WRONG,
    Batch,
    BatchCheck,
    Results,
    Share,
)

#: Pause between looks at the buffer, and time allowed beyond a check's limit.
_TICK_S = 0.01
_GRACE_S = 0.25
#: Limit for compiling a candidate, and for cleaning up after a check.
_BETWEEN_S = 2.0
#: Kind of a process's clock, in the number that names it (Linux, `CPUCLOCK_SCHED` in posix-timers.h).
_OF_PROCESS = 2
#: A child that has not computed as long as its check may is left alone for so many times as long.
_WAITING_TIMES = 5


class BatchServer:
    """Serves one batch: made when it begins, then `share` for each share.

    `become` turns this process, a fresh fork, into a sealed child and runs the given function; `send` sends a message
    to the host.
    """

    def __init__(
        self,
        batch: Batch,
        become: Callable[[Callable[[], None]], NoReturn],
        send: Callable[[msgspec.Struct], None],
        folder: str,
    ) -> None:
        self._batch = batch
        self._become, self._send, self._folder = become, send, folder
        self._candidates = Candidates(batch, folder)
        #: Of the share under way: how many candidates have been reported, and its children's time to be ready.
        self._told_count = self._setup_us = 0

    def share(self, share: Share) -> None:
        """Run a share to its end, in as many children as needed, and report the outcomes as they come."""
        buffer = ResultBuffer(len(share.candidates), len(self._batch.checks))
        self._told_count = self._setup_us = 0
        place = (0, 0)
        try:
            while place[0] < len(share.candidates):
                before = place
                place = self._child(share, buffer, place)
                if place == before:  # no progress: skip that check
                    place = self._after(buffer, *place, DIED)
            self._tell(buffer, len(share.candidates))
        finally:
            buffer.close()

    def _child(self, share: Share, buffer: ResultBuffer, start: tuple[int, int]) -> tuple[int, int]:
        """Run one child to its end; return where the next begins."""
        buffer.at(*start)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._become(lambda: self._candidates.run(share.candidates, buffer, start))
        os.close(writing)
        stuck = False
        word, since, computed_s = buffer.word, time.monotonic(), 0.0
        try:
            while not self._ended(pid, reading):
                if buffer.word != word:
                    word, since, computed_s = buffer.word, time.monotonic(), _computed_s(pid)
                    self._tell(buffer, min(buffer.place[0], len(share.candidates)))
                elif self._is_stuck(buffer, time.monotonic() - since, _computed_s(pid) - computed_s):
                    stuck = True
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    break
        finally:
            os.close(reading)
            empty_folder(self._folder)
        self._setup_us += buffer.ready_us
        buffer.ready_us = 0
        candidate, check, running = buffer.place
        if candidate < len(share.candidates) and (running or stuck):
            return self._after(buffer, candidate, check, TIMED_OUT if stuck and running else DIED)
        return candidate, check

    def _ended(self, pid: int, reading: int) -> bool:
        """Wait for a tick, or for the end of the child; a child may close its end of the pipe and keep running."""
        ready, _, _ = select.select([reading], [], [], _TICK_S)
        ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        if ready and not ended:
            time.sleep(0.0005)  # its descriptors are closed, but it is still ending
        return ended

    def _is_stuck(self, buffer: ResultBuffer, took_s: float, computed_s: float) -> bool:
        """Return whether a child is stuck: at one position for `took_s` by the clock, with that much computing time."""
        _, check, running = buffer.place
        checks = self._batch.checks
        limit_s, patience_s = _BETWEEN_S, _BETWEEN_S
        if running and check < len(checks):
            limit_s = checks[check].timeout_s
            patience_s = waited_s(limit_s) + _GRACE_S
        return took_s > (patience_s if computed_s > limit_s else _WAITING_TIMES * patience_s)

    def _after(self, buffer: ResultBuffer, candidate: int, check: int, letter: str) -> tuple[int, int]:
        """Record the outcome of a check whose child has ended; return the position to continue from."""
        if check < buffer.checks:
            buffer.put(candidate, check, letter)
        if self._batch.every and check + 1 < buffer.checks:
            return candidate, check + 1
        return candidate + 1, 0

    def _tell(self, buffer: ResultBuffer, done: int) -> None:
        """Send the rows of finished candidates that were not sent before."""
        if done > self._told_count:
            letters = [buffer.row(candidate) for candidate in range(self._told_count, done)]
            self._send(Results(letters=letters, setup_s=(self._setup_us + buffer.ready_us) / 1e6))
            self._told_count = done


def _computed_s(pid: int) -> float:
    """Return the computing time that a child has used so far, in seconds; only before waiting for its end."""
    return time.clock_gettime((~pid << 3) | _OF_PROCESS)


# Candidates against checks, one after the other in a child.


#: Limit for a first run of the batch's own code, which imports its modules.
_FIRST_LOOK_S = 0.5
#: A value so much longer than the expected one is wrong, whatever is in it.
_LONGER_TIMES, _LONGER_CHARS = 4, 10_000
#: Stands in encoded arguments that hold an array of objects.
_OBJECTS = b'"objects"'
_decode = msgspec.json.decode


class _Prepared:
    """A check that is prepared once in the trial server for all candidates."""

    def __init__(self, check: BatchCheck, result_max_bytes: int) -> None:
        self.arguments, self.raises, self.known = bytes(check.arguments), check.raises, check.known
        self.timeout_s, self.run = check.timeout_s, check.run
        self.exact, self.typed = check.exact, check.typed
        self.expected = _decode(check.expected)
        #: The expected value itself, where it is more than plain JSON (`read`).
        self.wanted: object = None
        self.has_wanted = False
        self._given: object = None
        longer = _LONGER_TIMES * len(check.expected) + _LONGER_CHARS
        self.max_chars = min(longer, result_max_bytes) if check.known else result_max_bytes
        self.call: Call | None = None
        self.setup = compile(check.setup, SETUP_FILENAME, "exec", dont_inherit=True) if check.setup else None
        self.broken = False
        #: Set where nothing says what is right: the batch's own code made a call there that is not on record.
        self.unknowable = False
        if check.call:
            try:
                self.call = Call(check.call)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.broken = True

    def read(self) -> None:
        """Make the values of an exact check, once in each child; libraries may start threads for that."""
        if not self.exact:
            return
        self._given = values.remade(_decode(self.arguments))
        if self.known and values.has_tags(self.expected):
            self.wanted, self.has_wanted = values.remade(self.expected), True

    def fresh_arguments(self) -> Any:
        """Return arguments that no candidate has had before."""
        if not self.exact:
            return _decode(self.arguments)
        if _OBJECTS in self.arguments:  # a copy of an array shares what its cells hold
            return values.remade(_decode(self.arguments))
        return copy.deepcopy(self._given)


class Candidates:
    """A prepared batch; a child calls `run`. `folder` is the scratch folder."""

    def __init__(self, batch: Batch, folder: str) -> None:
        self._batch, self._folder = batch, folder
        self._filename = batch.entry.filename
        self._tape = Tape(batch.cassette)
        self._awaits = "await" in batch.code and "mcp" in batch.code
        self._is_cell = any(check.setup for check in batch.checks)
        self._checks = [_Prepared(check, batch.result_max_bytes) for check in batch.checks]
        self._shapes: dict[Any, Shape | None] = {}
        #: Value of the last check that returned, as in JSON, or as it is if the check is exact. Then the exception name
        #: of the last check that raised.
        self._found: object = None
        self._raised = ""

    def run(self, candidates: Sequence[Sequence[Edit]], buffer: ResultBuffer, start: tuple[int, int]) -> None:
        """Check the candidates and put the outcomes into the buffer, until the end or a need to leave.

        start: The candidate and the check to begin with.
        """
        began = time.perf_counter()
        limits_s = sum(check.timeout_s for check in self._checks) * len(candidates)
        lockdown.limit_tool(self._batch.memory_bytes, int(2 * limits_s) + 10)
        alarm = Alarm()
        process = ProcessState(self._batch.output_max_bytes, self._folder, self._tape, self._batch.withheld)
        self._look_first(alarm, process)
        for check in self._checks:
            check.read()
        process.remember()
        if self._batch.as_code and not self._take_as_right(alarm, process):
            return
        buffer.ready_us = int((time.perf_counter() - began) * 1e6)
        first_check = start[1]
        for position in range(start[0], len(candidates)):
            buffer.at(position, first_check)
            code = self._compiled(candidates[position])
            if code is not None and not self._try(code, position, first_check, buffer, alarm, process):
                return
            first_check = 0
        buffer.at(len(candidates), 0)

    def _try(
        self,
        code: CodeType,
        position: int,
        first: int,
        buffer: ResultBuffer,
        alarm: Alarm,
        process: ProcessState,
    ) -> bool:
        """Run one candidate; False if the process cannot be used for another check."""
        for number in range(first, len(self._checks)):
            buffer.at(position, number, running=True)
            letter, fit = self._outcome(code, self._checks[number], alarm, process)
            buffer.put(position, number, letter)
            goes_on = self._batch.every or letter in (PASSED, NOT_ON_RECORD)
            more = number + 1 < len(self._checks) and goes_on
            buffer.at(*((position, number + 1) if more else (position + 1, 0)))
            fit = process.restore() and fit
            if not fit or not more:
                return fit
        return True

    def _take_as_right(self, alarm: Alarm, process: ProcessState) -> bool:
        """Take the results of the batch's own code as the expected ones; False when the process is not fit for more."""
        code = self._compiled([])
        if code is None:
            return True
        for check in self._checks:
            if check.known or check.raises:
                continue
            self._raised = ""
            letter, fit = self._outcome(code, check, alarm, process)
            if letter == PASSED:
                check.expected, check.wanted, check.known = self._found, self._found, True
                check.has_wanted = check.exact
            elif letter == RAISED:
                check.raises = self._raised
            elif letter == NOT_ON_RECORD:
                check.unknowable = True
            if not (process.restore() and fit):
                return False
        return True

    def _outcome(
        self, code: CodeType, check: _Prepared, alarm: Alarm, process: ProcessState
    ) -> tuple[str, bool]:
        """Return the letter of one check, and whether the process can be used for another."""
        namespace: dict[str, Any] = {}
        letter, fit = TIMED_OUT, True
        try:
            process.begin(check.run)
            alarm.set(check.timeout_s)
            try:
                namespace = fresh_namespace(process.names)
                letter = self._judged(code, check, namespace)
                alarm.stop()
            except TimeIsUp:
                alarm.stop()
            except BaseException as error:  # noqa: BLE001 - whatever a candidate raises is its outcome
                alarm.stop()
                fit = not isinstance(error, MemoryError)
                names = _names(error)
                letter = PASSED if check.raises and check.raises in names else RAISED
                self._raised = names[1]
            if alarm.rang:  # it may have caught the alarm, and still returned
                letter = TIMED_OUT
        except TimeIsUp:  # rang between two of the lines above
            alarm.stop()
            letter = TIMED_OUT
        namespace.clear()
        missing = process.endpoint.playback.missing or process.files.missing
        if (check.unknowable or missing) and letter in (PASSED, WRONG, RAISED):
            letter = NOT_ON_RECORD  # whatever the code made of it
        return letter, fit

    def _judged(self, code: CodeType, check: _Prepared, namespace: dict[str, Any]) -> str:
        """Run a check to its value and compare."""
        if check.broken:
            return RAISED
        arguments = check.fresh_arguments()
        if check.setup is not None:
            exec(check.setup, namespace)  # noqa: S102 - of the host, run here
        if check.call is not None:
            awaited(eval(code, namespace))  # noqa: S307 - what this process is for
            value = check.call.evaluate(namespace)
        else:
            shape = self._shape(code)
            if shape is None:
                return RAISED
            if shape.kind == "script":
                namespace["arguments"] = arguments
            exec(code, namespace)  # noqa: S102 - what this process is for, and restricted to
            value = call_entry(namespace, shape, arguments)
        if check.raises:
            return WRONG
        if not check.known and check.call is None and why_refused(value, check.max_chars) is not None:
            return RAISED
        if check.exact and (check.has_wanted or not check.known):
            self._found = value
            return PASSED if not check.known or values.equal(check.wanted, value) else WRONG
        try:
            self._found, _ = to_jsonable(value, describe, max_chars=check.max_chars)
        except ValueTooLarge:
            return WRONG if check.known else RAISED
        if not check.known or same_value(check.expected, self._found):
            return WRONG if check.typed and is_beyond_json(type_outline(value)) else PASSED
        return PASSED if check.exact and values.meets(check.expected, value) else WRONG

    def _compiled(self, edits: Sequence[Edit]) -> CodeType | None:
        """Compile a candidate; None if its code does not compile."""
        try:
            self._text = apply_edits(self._batch.code, list(edits))
            source: str | ast.Module = self._text
            if self._awaits:
                source = with_awaited_calls(ast.parse(self._text, self._filename))
            if self._is_cell:
                source = as_cell(
                    source if isinstance(source, ast.Module) else ast.parse(source, self._filename)
                )
            flags = CELL_FLAGS if self._is_cell else 0
            code: CodeType = compile(source, self._filename, "exec", flags, dont_inherit=True)
            return code
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return None

    def _shape(self, code: CodeType) -> Shape | None:
        """Return the function to call in the last compiled candidate; None if there is none.

        The text is read only for names and signatures that were not met before.
        """
        key = (
            code.co_names,
            tuple(_signature(inner) for inner in code.co_consts if isinstance(inner, CodeType)),
        )
        if key not in self._shapes:
            try:
                self._shapes[key] = read_shape(parse(self._text, self._filename), self._batch.entry.tool_name)
            except HealkitError:
                self._shapes[key] = None
        return self._shapes[key]

    def _look_first(self, alarm: Alarm, process: ProcessState) -> None:
        """Run the batch's own code once, so that its imports exist before any candidate comes."""
        code = self._compiled([])
        if code is None:
            return
        namespace: dict[str, Any] = {}
        try:
            process.begin()
            alarm.set(_FIRST_LOOK_S)
            namespace = fresh_namespace(process.names)
            if self._is_cell and (setup := self._checks[0].setup) is not None:
                exec(setup, namespace)  # noqa: S102 - of the host, run here
            awaited(eval(code, namespace))  # noqa: S307 - what this process is for, and restricted to
        except BaseException:  # noqa: BLE001, S110 - the candidates' own outcomes will tell
            pass
        alarm.stop()
        namespace.clear()
        process.restore()


def _signature(code: CodeType) -> tuple[Any, ...]:
    named = code.co_argcount + code.co_kwonlyargcount
    inner = code.co_names if code.co_argcount == 0 else ()
    return (
        code.co_name,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_flags & 0xC,
        code.co_varnames[:named],
        inner,
    )


def _names(error: BaseException) -> tuple[str, str]:
    """Return an exception's names: its class's, and that with the module unless the tool itself defines it."""
    kind = type(error)
    plain = kind.__module__ in {"builtins", TOOL_MODULE}
    return kind.__name__, kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


# State that a check can change in its process, restored.


_modules, _path, _builtins, _environment = sys.modules, sys.path, builtins.__dict__, os.environ
#: Its undecoded content: comparing the mapping itself decodes every name, which took a third of a check.
_variables: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]  # CPython's own mapping behind it


class Silence(PlainStream):
    """stdout and stderr of a check: counted, so that a flood ends, but not kept."""

    def write(self, text: str) -> int:
        """Count; called by print. Beyond the budget it raises `OutputLimit`."""
        if not Output.admit(text):
            raise OutputLimit(OVER_LIMIT)
        return len(text)


class ProcessState:
    """State of this process that each check must find."""

    def __init__(self, output_max_bytes: int, folder: str, tape: Tape, withheld: Withheld) -> None:
        self._output_max_bytes = output_max_bytes
        self._folder = folder
        self._stream = Silence()
        #: Answers all calls; there is no host to make them.
        self.endpoint = RecordedEndpoint(tape)
        self.files = FileWatch(withheld)
        servers = build_servers(self.endpoint, tape.cassette.definitions)
        #: Names in a tool's namespace besides its own.
        self.names: dict[str, Any] = {"mcp": servers, "trace": Trace(self.endpoint)}
        random.seed(0)  # same for every candidate, so that outcomes are reproducible
        self.remember()

    def remember(self) -> None:
        """Save the current state as the one to restore."""
        gc.freeze()
        self._kept_modules = dict(_modules)
        self._kept_path = list(_path)
        self._kept_builtins = dict(_builtins)
        self._kept_variables = dict(_variables)
        self._kept_environment = dict(_environment)
        self._depth = sys.getrecursionlimit()
        self._random = random.getstate()
        numpy = _modules.get("numpy")
        self._numpy = None if numpy is None else (numpy.random, numpy.random.get_state())

    def begin(self, run: str = "") -> None:
        """Prepare for a check: its output is discarded and limited, its calls are answered as those of `run`."""
        self.endpoint.rewind(run)
        self.files.missing = ""
        sys.stdout = sys.stderr = self._stream
        Output.left_chars, Output.exceeded = self._output_max_bytes, False

    def restore(self) -> bool:
        """Restore the state after a check; False if a thread is left, which only the end of the process removes."""
        Output.left_chars = None
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)
        sys.settrace(None)
        sys.setprofile(None)
        gc.enable()
        random.setstate(self._random)
        if self._numpy is not None:
            self._numpy[0].set_state(self._numpy[1])
        if _builtins != self._kept_builtins:
            _builtins.clear()
            _builtins.update(self._kept_builtins)
        if _path != self._kept_path:
            _path[:] = self._kept_path
        sys.path, sys.modules, os.environ = _path, _modules, _environment
        _modules.pop(TOOL_MODULE, None)
        if len(_modules) != len(self._kept_modules) or _modules != self._kept_modules:
            self._restore_modules()
        if _variables != self._kept_variables:
            _environment.clear()
            _environment.update(self._kept_environment)
        os.chdir(self._folder)
        empty_folder(self._folder)
        return _thread._count() == 0

    def _restore_modules(self) -> None:
        """Keep imports of installed files; undo what a check made, removed or replaced."""
        for name, module in list(_modules.items()):
            if name not in self._kept_modules and self._installed(module):
                self._kept_modules[name] = module
        _modules.clear()
        _modules.update(self._kept_modules)

    def _installed(self, module: object) -> bool:
        spec = getattr(module, "__spec__", None)
        place = getattr(spec, "origin", None)
        if place in ("built-in", "frozen"):
            return True
        return isinstance(place, str) and os.path.isabs(place) and not place.startswith(self._folder + os.sep)


# Results of a share, in memory that the trial server shares with its child.


_HEADER_BYTES = 16
_RUNNING = 1


class ResultBuffer:
    """Position (candidate, check, whether a check runs) and one letter for each candidate and check."""

    def __init__(self, candidates: int, checks: int) -> None:
        self.candidates, self.checks = candidates, checks
        size = candidates * checks
        self._memory = mmap.mmap(-1, _HEADER_BYTES + max(size, 1))
        self._view = memoryview(self._memory)
        self._header = self._view[:_HEADER_BYTES].cast("Q")
        self.letters = self._view[_HEADER_BYTES : _HEADER_BYTES + size]
        self.letters[:] = NOT_RUN.encode() * size

    @property
    def word(self) -> int:
        """Position as one number, which changes when anything happens."""
        return self._header[0]

    @property
    def place(self) -> tuple[int, int, bool]:
        """Candidate, check, and whether that check is running."""
        word = self._header[0]
        return word >> 32, (word >> 1) & 0x7FFFFFFF, bool(word & _RUNNING)

    @property
    def ready_us(self) -> int:
        """Time until the child was ready, in µs after it began; 0 before."""
        return self._header[1]

    @ready_us.setter
    def ready_us(self, value: int) -> None:
        self._header[1] = value

    def at(self, candidate: int, check: int, *, running: bool = False) -> None:
        """Write the position, in one store."""
        self._header[0] = candidate << 32 | check << 1 | running

    def put(self, candidate: int, check: int, letter: str) -> None:
        """Write an outcome; an unknown letter counts as not run."""
        self.letters[candidate * self.checks + check] = ord(letter if letter in LETTERS else NOT_RUN)

    def row(self, candidate: int) -> str:
        """Return a candidate's letters so far."""
        start = candidate * self.checks
        text = bytes(self.letters[start : start + self.checks]).decode("latin-1")
        return "".join(letter if letter in LETTERS else NOT_RUN for letter in text)

    def close(self) -> None:
        """Release the shared memory."""
        self.letters.release()
        self._header.release()
        self._view.release()
        self._memory.close()

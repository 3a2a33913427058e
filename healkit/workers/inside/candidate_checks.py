"""Candidates against checks, one after the other in a child.

Every check gets a fresh module namespace and freshly decoded arguments. Other things that a candidate can change in the
process are restored where that is cheap: the interpreter's settings, random numbers, builtins, modules, environment,
working directory and scratch folder. The rest (variables of imported modules, state of C code) stays until this child
ends, a fraction of a second later. Results that matter are validated in a process of their own.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from types import CodeType
from typing import Any

import msgspec

from healkit import values
from healkit.contracts.encoding import ValueTooLarge, to_jsonable
from healkit.contracts.healing import (
    PASSED,
    RAISED,
    TIMED_OUT,
    WRONG,
    Batch,
    BatchCheck,
    Edit,
    apply_edits,
    same_value,
)
from healkit.errors import HealkitError
from healkit.pysource.shapes import Shape, parse, read_shape
from healkit.workers.inside import lockdown
from healkit.workers.inside.capture import TOOL_MODULE, describe
from healkit.workers.inside.process_state import ProcessState
from healkit.workers.inside.result_buffer import ResultBuffer
from healkit.workers.inside.time_limits import Alarm, TimeIsUp
from healkit.workers.inside.tool_entry import Call, call_entry, fresh_namespace

#: Limit for a first run of the batch's own code, which imports its modules.
_FIRST_LOOK_S = 0.5
#: A value so much longer than the expected one is wrong, whatever is in it.
_LONGER_TIMES, _LONGER_CHARS = 4, 10_000
#: Stands in encoded arguments that hold an array of objects.
_OBJECTS = b'"objects"'
_decode = msgspec.json.decode


class _Prepared:
    """A check made ready in the trial server: what all candidates need of it, once."""

    def __init__(self, check: BatchCheck, result_max_bytes: int) -> None:
        self.arguments, self.raises, self.known = bytes(check.arguments), check.raises, check.known
        self.timeout_s = check.timeout_s
        self.exact = check.exact
        self.expected = _decode(check.expected)
        #: The expected value itself, where it is more than plain JSON (`read`).
        self.wanted: Any = None
        self.has_wanted = False
        self._given: Any = None
        longer = _LONGER_TIMES * len(check.expected) + _LONGER_CHARS
        self.max_chars = min(longer, result_max_bytes) if check.known else result_max_bytes
        self.call: Call | None = None
        self.broken = False
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
    """A batch made ready; `run` is a child's. `folder` is the scratch folder."""

    def __init__(self, batch: Batch, folder: str) -> None:
        self._batch, self._folder = batch, folder
        self._filename = batch.entry.filename
        self._checks = [_Prepared(check, batch.result_max_bytes) for check in batch.checks]
        self._shapes: dict[Any, Shape | None] = {}
        #: Value of the last check that returned, as JSON has it or, of an exact check, as it is; and exception name
        #: of the last that raised.
        self._found: Any = None
        self._raised = ""

    def run(self, candidates: Sequence[Sequence[Edit]], buffer: ResultBuffer, start: tuple[int, int]) -> None:
        """Candidates from `start` on (candidate, check), outcomes into the buffer, until the end or a need to leave."""
        began = time.perf_counter()
        limits_s = sum(check.timeout_s for check in self._checks) * len(candidates)
        lockdown.limit_tool(self._batch.memory_bytes, int(2 * limits_s) + 10)
        alarm = Alarm()
        process = ProcessState(self._batch.output_max_bytes, self._folder)
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
        """Run one candidate; False when the process is not fit for another check."""
        for number in range(first, len(self._checks)):
            buffer.at(position, number, running=True)
            letter, fit = self._outcome(code, self._checks[number], alarm, process)
            buffer.put(position, number, letter)
            more = number + 1 < len(self._checks) and (self._batch.every or letter == PASSED)
            buffer.at(*((position, number + 1) if more else (position + 1, 0)))
            fit = process.restore() and fit
            if not fit or not more:
                return fit
        return True

    def _take_as_right(self, alarm: Alarm, process: ProcessState) -> bool:
        """Take what the batch's own code does as right; False when the process is not fit for more."""
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
            if not (process.restore() and fit):
                return False
        return True

    def _outcome(
        self, code: CodeType, check: _Prepared, alarm: Alarm, process: ProcessState
    ) -> tuple[str, bool]:
        """Return the letter of one check, and whether the process is fit for another."""
        namespace: dict[str, Any] = {}
        letter, fit = TIMED_OUT, True
        try:
            process.begin()
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
            if alarm.rang:  # it may have caught the alarm, and returned all the same
                letter = TIMED_OUT
        except TimeIsUp:  # rang between two of the lines above
            alarm.stop()
            letter = TIMED_OUT
        namespace.clear()
        return letter, fit

    def _judged(self, code: CodeType, check: _Prepared, namespace: dict[str, Any]) -> str:
        """Run a check to its value and compare."""
        if check.broken:
            return RAISED
        arguments = check.fresh_arguments()
        if check.call is not None:
            exec(code, namespace)  # noqa: S102 - what this process is for
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
        if check.exact and (check.has_wanted or not check.known):
            self._found = value
            return PASSED if not check.known or values.equal(check.wanted, value) else WRONG
        try:
            self._found, _ = to_jsonable(value, describe, max_chars=check.max_chars)
        except ValueTooLarge:
            return WRONG if check.known else RAISED
        if not check.known or same_value(check.expected, self._found):
            return PASSED
        return PASSED if check.exact and values.meets(check.expected, value) else WRONG

    def _compiled(self, edits: Sequence[Edit]) -> CodeType | None:
        """Compile a candidate; None where its code does not compile."""
        try:
            self._text = apply_edits(self._batch.code, list(edits))
            return compile(self._text, self._filename, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return None

    def _shape(self, code: CodeType) -> Shape | None:
        """Return what to call in the candidate compiled last; None where nothing can be called.

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
        """Run the batch's own code once, so that what it imports is there before any candidate comes."""
        code = self._compiled([])
        if code is None:
            return
        namespace: dict[str, Any] = {}
        try:
            process.begin()
            alarm.set(_FIRST_LOOK_S)
            namespace = fresh_namespace(process.names)
            exec(code, namespace)  # noqa: S102 - what this process is for, and restricted to
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

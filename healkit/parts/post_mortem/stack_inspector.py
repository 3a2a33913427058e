"""Inspector of a failed run: frames, source, locals, eval.

Answers are computed here, in the worker and under its restrictions, because reading a value may run the tool's code.
Each answer has a limit of time and of size, so that neither an endless repr nor one of a gigabyte reaches the host.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import reprlib
import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from healkit.core.contracts.failure import KeptFrame, Local
from healkit.core.pysource.tracebacks import traceback_of
from healkit.core.wire.encoding import DECIMAL_BITS, int_text
from healkit.core.workers.inside import capture
from healkit.core.workers.inside.capture import TimeIsUp, deadline
from healkit.core.workers.inside.tool_runner import ToolRunner, no_running_loop
from healkit.parts.post_mortem.previews import module_of, preview
from healkit.parts.post_mortem.questions import (
    ANSWER_MAX_BYTES,
    FRAMES_MAX,
    LOCALS_MAX,
    REPLY,
    REQUEST,
    Answer,
    AskConsole,
    AskEval,
    AskFrames,
    AskLocals,
    AskSource,
    Done,
    EvalDone,
    EvalResult,
    Frames,
    FrameSource,
    Locals,
    Question,
    Refused,
    SourceFound,
    decode_question,
    encode,
)

if TYPE_CHECKING:
    from zmq.eventloop.zmqstream import ZMQStream

#: Limits for reading one value, and one frame's locals together.
_VALUE_S, _LOCALS_S = 0.5, 2.0
_LOCAL_MAX_CHARS, _EVAL_MAX_CHARS = 200, 2000
_OUTPUT_MAX_CHARS = 10_000
_SOURCE_MAX_LINES, _SOURCE_MAX_CHARS = 400, 60_000
#: Names that healkit puts into a tool's module.
_GIVEN = ("mcp", "trace", "Tool")


def answer_questions(kernel: Any, shell: Any, runner: ToolRunner) -> None:
    """Accept questions about a failure as a separate message type that needs no code of the tool.

    A comm would also work, but the tool could reach its ends. An execute request evaluates in the namespace of the
    prompt, with all names that exist there by then. Called in each worker, before its tool.
    """
    inspector: StackInspector | None = None

    def handle(stream: ZMQStream, idents: list[bytes], message: dict[str, Any]) -> None:
        nonlocal inspector
        inspector = inspector or StackInspector(runner.ended_by, runner.filename)
        with no_running_loop():
            answer = inspector.answer(str(message["content"].get("question")), shell.push)
        kernel.session.send(stream, REPLY, {"answer": answer}, parent=message, ident=idents)

    kernel.shell_handlers[REQUEST] = handle


class StackInspector:
    """Last exception of this process with its frames, which it keeps alive.

    Sets `sys.last_exc` and its older variants, so that `%debug` in a console enters the tool.
    """

    def __init__(self, error: BaseException | None, tool_filename: str) -> None:
        self.tool_filename = tool_filename
        self.frames: dict[int, tuple[FrameType, int]] = {}
        if error is None:
            return
        traceback = traceback_of(error)
        while traceback is not None and capture.is_own(traceback.tb_frame.f_code.co_filename):
            traceback = traceback.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
        sys.last_exc = error  # type: ignore[attr-defined]  # from Python 3.12 on; harmless before
        frames: list[tuple[FrameType, int]] = []
        while traceback is not None:
            if not capture.is_own(traceback.tb_frame.f_code.co_filename):
                frames.append((traceback.tb_frame, traceback.tb_lineno or traceback.tb_frame.f_lineno or 0))
            traceback = traceback.tb_next
        half = FRAMES_MAX // 2
        numbers = range(len(frames))
        selected = numbers if len(frames) <= FRAMES_MAX else [*numbers[:half], *numbers[-half:]]
        self.frames = {number: frames[number] for number in selected}

    def answer(self, text: str, to_prompt: Callable[[dict[str, Any]], None]) -> str:
        """Answer one question, both as JSON; never raises. `to_prompt` gets the names for a console."""
        try:
            answer = encode(self._answer(decode_question(text), to_prompt))
        except Exception as error:  # noqa: BLE001 - every question needs an answer
            answer = encode(Refused(f"the question failed in the worker: {type(error).__name__}"))
        return answer if len(answer) <= ANSWER_MAX_BYTES // 2 else encode(Refused("the answer is too long"))

    def _answer(self, question: Question, to_prompt: Callable[[dict[str, Any]], None]) -> Answer:
        if isinstance(question, AskFrames):
            return Frames([self._frame(number) for number in self.frames])
        if question.frame not in self.frames:
            return Refused(f"there is no frame {question.frame}")
        frame, lineno = self.frames[question.frame]
        match question:
            case AskLocals(in_passing=in_passing):
                return Locals(list(_previews(frame) if in_passing else _locals(frame)))
            case AskSource():
                return SourceFound(_source(frame, lineno))
            case AskEval(expression=expression, timeout_s=timeout_s):
                return EvalDone(_evaluate(expression, frame, timeout_s))
            case AskConsole():
                to_prompt(dict(_named({**frame.f_globals, **frame.f_locals})))
                return Done()

    def _frame(self, number: int) -> KeptFrame:
        frame, lineno = self.frames[number]
        code = frame.f_code
        return KeptFrame(
            number,
            capture.safe(code.co_filename, 300),
            lineno,
            capture.safe(code.co_name, 200),
            capture.safe(linecache.getline(code.co_filename, lineno).strip(), 300),
            code.co_filename == self.tool_filename,
        )


def _named(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Leave out Python's own names: `__builtins__`, a comprehension's `.0`."""
    return ((name, value) for name, value in names.items() if not name.startswith(("__", ".")))


def _names(frame: FrameType) -> dict[str, Any]:
    names = dict(_named(frame.f_locals))
    if frame.f_locals is frame.f_globals:
        for name in _GIVEN:
            names.pop(name, None)
    return names


def _previews(frame: FrameType) -> Iterator[Local]:
    return (preview(name, value) for name, value in itertools.islice(_names(frame).items(), LOCALS_MAX))


def _locals(frame: FrameType) -> Iterator[Local]:
    names = _names(frame)
    end = time.monotonic() + _LOCALS_S
    for name, value in itertools.islice(names.items(), LOCALS_MAX):
        left_s = end - time.monotonic()
        if left_s > 0:
            shape, text = _described(value, _LOCAL_MAX_CHARS, min(_VALUE_S, left_s))
        else:
            shape, text = None, "<not read: the values before it took too long>"
        yield Local(capture.safe(name, 200), _type_of(value), text, shape)
    if len(names) > LOCALS_MAX:
        yield Local("…", "", f"{len(names) - LOCALS_MAX:,} more are not shown")


def _source(frame: FrameType, lineno: int) -> FrameSource:
    """Return the function around the frame, or the nearest part of it."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    first, last = max(frame.f_code.co_firstlineno, 1), _last_line(frame.f_code)
    if frame.f_code.co_name == "<module>":
        first, last = 1, len(lines)
    first = max(first, lineno - _SOURCE_MAX_LINES // 2)
    last = min(last, first + _SOURCE_MAX_LINES)
    return FrameSource(capture.safe("".join(lines[first - 1 : last]), _SOURCE_MAX_CHARS), first, lineno)


def _last_line(code: CodeType) -> int:
    last_line = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return max(last_line, *(_last_line(c) for c in code.co_consts if isinstance(c, CodeType)), last_line)


def _evaluate(expression: str, frame: FrameType, timeout_s: float) -> EvalResult:
    """Return the expression's value in the frame, or its exception."""
    output = _Captured()
    # One namespace, so that a comprehension in the expression sees the frame's locals too.
    names = {**frame.f_globals, **frame.f_locals}
    try:
        with (
            deadline(timeout_s),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            value = eval(compile(expression.strip(), "<post-mortem>", "eval", dont_inherit=True), names)  # noqa: S307 - asked for
    except TimeIsUp:
        return EvalResult(
            output=output.text, ename="TimeoutError", evalue=f"still running after {timeout_s:g} s"
        )
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its outcome
        return EvalResult(output=output.text, ename=_type_of(error), evalue=_message(error))
    shape, text = _described(value, _EVAL_MAX_CHARS, _VALUE_S)
    return EvalResult(_type_of(value), text, shape, output.text)


class _Captured(io.TextIOBase):
    """Output of an expression, up to a limit; then printing raises."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        room = _OUTPUT_MAX_CHARS - len(self.text)
        self.text += capture.safe(text[:room], room)
        if len(text) > room:
            raise capture.OutputLimit("the expression printed more than is allowed")
        return len(text)


def _message(error: BaseException) -> str:
    try:
        with deadline(_VALUE_S):
            return capture.safe(str(error), _EVAL_MAX_CHARS)
    except BaseException as trouble:  # noqa: BLE001 - a foreign __str__
        return f"<no message: {type(trouble).__name__} while it was read>"


def _described(value: object, max_chars: int, limit_s: float) -> tuple[list[int] | None, str]:
    """Shape and short repr, within a time limit; never raises."""
    shape = None
    try:
        with deadline(limit_s):
            shape = _shape(value)
            text = capture.safe(_Short(max_chars).repr(value), max_chars)
    except TimeIsUp:
        text = f"<{_type_of(value)} object, its repr takes too long>"
    except BaseException as error:  # noqa: BLE001 - whatever a foreign __repr__ raises
        text = f"<{_type_of(value)} object, its repr raises {_type_of(error)}>"
    return shape, text


def _shape(value: object) -> list[int] | None:
    """Return the shape in the sense of numpy and pandas: a tuple of whole numbers."""
    try:
        shape = None if isinstance(value, type) else getattr(value, "shape", None)
    except Exception:  # noqa: BLE001 - a property of a stranger
        return None
    is_one = isinstance(shape, tuple) and len(shape) <= 32 and all(type(n) is int for n in shape)
    return list(shape) if is_one else None  # type: ignore[arg-type]  # a tuple, as was just asked


_qualname_of = type.__dict__["__qualname__"].__get__


def _type_of(value: object) -> str:
    """Return a name such as `pandas.DataFrame`; does not run code of a metaclass."""
    kind = type(value)
    module = module_of(kind)
    if type(module) is not str or module in {"builtins", capture.TOOL_MODULE}:
        return capture.safe(_qualname_of(kind), 200)
    return capture.safe(f"{module}.{_qualname_of(kind)}", 200)


class _Short(reprlib.Repr):
    """Beginning of a repr, without the cost of the rest: nothing is sorted, and long text is cut first."""

    def __init__(self, max_chars: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxarray = self.maxdict = self.maxset = (
            10 if max_chars < 500 else 50
        )
        self.maxfrozenset = self.maxdeque = self.maxset
        self.maxstring = self.maxother = self.max_chars = max_chars

    def repr_instance(self, x: object, level: int) -> str:
        """Shorten anything without a rule of its own; called by `reprlib`."""
        if isinstance(x, str | bytes | bytearray) and len(x) > self.max_chars:
            return repr(x[: self.max_chars]) + f"… [{len(x):,} long]"
        try:
            return repr(x)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a foreign __repr__ raises
            return f"<{_type_of(x)} object, its repr raises {_type_of(error)}>"

    repr_str = repr_instance

    def repr_int(self, x: int, level: int) -> str:
        """Shorten an int without writing all its digits, which takes quadratic time; called by `reprlib`."""
        return int_text(x, min(4 * self.max_chars, DECIMAL_BITS))

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Shorten a dict in its own order; called by `reprlib`."""
        if level <= 0:
            return "{...}" if x else "{}"
        items = itertools.islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in items]
        return "{" + ", ".join(parts + ["..."] * (len(x) > self.maxdict)) + "}"

    def repr_set(self, x: set[Any], level: int) -> str:
        """Shorten a set in its own order; called by `reprlib`."""
        if not x:
            return "set()"
        parts = (
            [self.repr1(item, level - 1) for item in itertools.islice(x, self.maxset)] if level > 0 else []
        )
        return "{" + ", ".join(parts + ["..."] * (len(x) > len(parts))) + "}"

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        """Shorten a frozenset as a set; called by `reprlib`."""
        return f"frozenset({self.repr_set(x, level) if x else ''})"  # type: ignore[arg-type]  # reads the same

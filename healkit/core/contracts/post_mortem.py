"""Post-mortem of a failed run: questions, answers, previews.

Questions to the run's worker and its answers travel as one message type of Jupyter's shell channel, each as JSON text
in the message's content. An answer is the worker's claim: the host accepts it only in these types, and at most
`ANSWER_MAX_BYTES` of it.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
import pathlib
import sys
import types
import uuid
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from healkit.core.contracts import claims
from healkit.core.contracts.encoding import int_text

if TYPE_CHECKING:
    from collections.abc import Collection


#: Jupyter's `msg_type` of a question; that of the answer ends in `_reply`.
REQUEST, REPLY = "healkit_post_mortem_request", "healkit_post_mortem_reply"
#: Limit of an answer, in bytes.
ANSWER_MAX_BYTES = 1024 * 1024
#: Limits of the frames, and of one frame's locals, in an answer.
FRAMES_MAX, LOCALS_MAX = 200, 200

_Number = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Shape = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]], msgspec.Meta(max_length=100)]


class KeptFrame(msgspec.Struct, frozen=True):
    """Frame of the failed stack: `number` counts from the outermost, 0. `in_tool` is false for a library's."""

    number: _Number
    filename: str
    lineno: _Number
    name: str
    line: str
    in_tool: bool


class Local(msgspec.Struct, frozen=True, omit_defaults=True):
    """Local variable: its type, its shape where it has one (as numpy means it), and a short repr."""

    name: str
    type: str
    repr: str
    shape: _Shape | None = None


class FrameSource(msgspec.Struct, frozen=True):
    """Code around a frame: `text` starts at line `first_lineno`, the frame stands at `lineno`."""

    text: str
    first_lineno: _Number
    lineno: _Number


class EvalResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of an expression: its value as type, shape and short repr, or the exception (`ename`, `evalue`).

    `output` is what it printed, cut.
    """

    type: str = ""
    repr: str = ""
    shape: _Shape | None = None
    output: str = ""
    ename: str = ""
    evalue: str = ""

    @property
    def ok(self) -> bool:
        """True if it has a value."""
        return not self.ename


class AskFrames(msgspec.Struct, frozen=True, tag="frames"):
    """Question for the frames."""


class AskLocals(msgspec.Struct, frozen=True, tag="locals"):
    """Question for one frame's locals, as previews, or as their own reprs within a time."""

    frame: int
    in_passing: bool = False


class AskSource(msgspec.Struct, frozen=True, tag="source"):
    """Question for the code of one frame."""

    frame: int


class AskEval(msgspec.Struct, frozen=True, tag="eval"):
    """Question for the value of an expression in one frame, within a time."""

    frame: int
    expression: str
    timeout_s: float


class AskConsole(msgspec.Struct, frozen=True, tag="console"):
    """Request to put one frame's names at the prompt of a console that is about to attach."""

    frame: int


class Frames(msgspec.Struct, frozen=True, tag="frames"):
    """Answer with all frames, libraries' too."""

    frames: Annotated[list[KeptFrame], msgspec.Meta(max_length=FRAMES_MAX)]


class Locals(msgspec.Struct, frozen=True, tag="locals"):
    """Answer with one frame's locals."""

    locals: Annotated[
        list[Local], msgspec.Meta(max_length=LOCALS_MAX + 1)
    ]  # the last may say how many more there are


class SourceFound(msgspec.Struct, frozen=True, tag="source"):
    """Answer to `AskSource`."""

    source: FrameSource


class EvalDone(msgspec.Struct, frozen=True, tag="eval"):
    """Answer to `AskEval`."""

    evaluated: EvalResult


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Answer that there is none, with the reason."""

    reason: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Answer to a request that was carried out."""


Question = AskFrames | AskLocals | AskSource | AskEval | AskConsole
Answer = Frames | Locals | SourceFound | EvalDone | Refused | Done

_encoder = msgspec.json.Encoder()
_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_answer: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
decode_question = _question.decode


def decode_answer(data: bytes) -> Answer:
    """Decode an answer; raises `claims.BadClaim` for what is none, or too much."""
    return claims.decode(data, _answer.decode, max_bytes=ANSWER_MAX_BYTES)


def encode(message: Question | Answer) -> str:
    """Encode a question or an answer as the text that travels."""
    return _encoder.encode(message).decode()


# Preview of a value: its type, its shape, the beginning of its text.
#
# A card under a failing cell is drawn without being asked for, in the middle of a user's work, so it must not run the
# user's code: a `__repr__` may take for ever, return a gigabyte, or send a request. A preview only reads the
# interpreter's own types, and numpy's and pandas', a little of each; of a foreign object it gives the class and what
# lies in its `__dict__`. To get the true repr, ask for it under a time limit (`Execution.post_mortem`).


TEXT_MAX_CHARS = 120
_ITEMS_MAX, _DEPTH_MAX = 6, 3
_BITS_MAX = 400

_SHORT = {
    bool, float, complex, type(None), type(Ellipsis), range, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta, uuid.UUID, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath,
}  # fmt: skip
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}
_qualname_of, _module_of = type.__dict__["__qualname__"].__get__, type.__dict__["__module__"].__get__


def preview(name: str, value: object) -> Local:
    """Return a variable as a `Local`; takes microseconds for any value, and never raises."""
    try:
        shape, text = _scientific(value) or (None, _text(value, 0))
    except Exception:  # noqa: BLE001 - whatever it was that lay in there
        shape, text = None, f"<{type_name(value)} object>"
    if len(text) > TEXT_MAX_CHARS:
        text = text[: TEXT_MAX_CHARS - 1] + "…"
    text = text.encode(errors="backslashreplace").decode()
    return Local(name[:200], type_name(value), text, shape)


def type_name(value: object) -> str:
    """Return a name such as `pandas.DataFrame`, past a metaclass that would run its own code for it."""
    kind = type(value)
    module, name = module_of(kind), str(_qualname_of(kind))[:200]
    if type(module) is not str or module in {"builtins", "__main__"} or module.startswith("__healkit"):
        return name
    return f"{module}.{name}"[:200]


def module_of(kind: type) -> Any:
    """Return a class's module; the package where it has the class too: pandas 2 calls itself `pandas.core.frame`."""
    module = _module_of(kind)
    if type(module) is str and "." in module:
        package = module.partition(".")[0]
        top_module = sys.modules.get(package)
        if type(top_module) is types.ModuleType and vars(top_module).get(_qualname_of(kind)) is kind:
            return package
    return module


def _text(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str or kind is bytes:
        cut = value[:TEXT_MAX_CHARS]
        return repr(cut) if len(cut) == len(value) else f"{cut!r}… [{len(value):,} long]"
    if kind is int:
        return int_text(value, _BITS_MAX)
    if kind in _SHORT or (kind in {decimal.Decimal, fractions.Fraction} and sys.getsizeof(value) < 500):
        return repr(value)
    if kind in _BRACKETS:
        return _items(value, kind, depth)
    if issubclass(kind, dict):
        return _mapping(value, kind, depth)
    if kind in {types.FunctionType, types.BuiltinFunctionType}:
        return f"<function {value.__name__}>"
    if kind is types.ModuleType:
        return f"<module {vars(value).get('__name__', '?')}>"
    if issubclass(kind, type):
        return f"<class {_qualname_of(value)}>"
    return _stranger(value, depth)


def _items(value: Collection[object], kind: type, depth: int) -> str:
    opening, closing = _BRACKETS[kind]
    if not value:
        return "set()" if kind is set else opening + closing
    if depth >= _DEPTH_MAX:
        return f"{opening}…{closing}"
    parts = [_text(item, depth + 1) for item in itertools.islice(value, _ITEMS_MAX)]
    comma = "," if kind is tuple and len(value) == 1 else ""
    return opening + ", ".join(parts + ["…"] * (len(value) > _ITEMS_MAX)) + comma + closing


def _mapping(value: dict[Any, Any], kind: type, depth: int) -> str:
    name = "" if kind is dict else f"{_qualname_of(kind)} "
    if depth >= _DEPTH_MAX:
        return f"{name}{{…}}"
    items = itertools.islice(dict.items(value), _ITEMS_MAX)
    parts = [f"{_text(key, depth + 1)}: {_text(item, depth + 1)}" for key, item in items]
    return name + "{" + ", ".join(parts + ["…"] * (dict.__len__(value) > _ITEMS_MAX)) + "}"


def _stranger(value: object, depth: int) -> str:
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = None
    if type(attributes) is not dict or not attributes or depth >= _DEPTH_MAX - 1:
        return f"<{type_name(value)} object>"
    parts = [
        f"{key}={_text(item, depth + 2)}" for key, item in itertools.islice(attributes.items(), _ITEMS_MAX)
    ]
    return f"<{type_name(value)} object: {', '.join(parts)}{', …' if len(attributes) > _ITEMS_MAX else ''}>"


def _scientific(value: Any) -> tuple[list[int] | None, str] | None:
    """Preview arrays by their first values and tables by their columns; None for anything else."""
    kind, numpy, pandas = type(value), sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and kind is getattr(numpy, "ndarray", None):
        return list(value.shape), f"{value.dtype} {_first(value.flat[:_ITEMS_MAX].tolist(), value.size)}"
    if numpy is not None and issubclass(kind, getattr(numpy, "generic", ())):
        return None, _text(value.item(), 0)
    if pandas is not None and kind is getattr(pandas, "DataFrame", None):
        return list(value.shape), f"columns {_first(value.columns[:_ITEMS_MAX].tolist(), value.shape[1])}"
    if pandas is not None and kind is getattr(pandas, "Series", None):
        return list(value.shape), f"{value.dtype} {_first(value.iloc[:_ITEMS_MAX].tolist(), len(value))}"
    return None


def _first(items: list[Any], count: int) -> str:
    parts = [_text(item, 1) for item in items]
    return "[" + ", ".join(parts + ["…"] * (count > _ITEMS_MAX)) + "]"

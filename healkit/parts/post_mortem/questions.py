"""Post-mortem of a failed run: questions, answers, previews.

Questions to the worker and its answers use one message type of Jupyter's shell channel, each as JSON text in the
message's content. The host does not trust an answer: it accepts only these types, and at most `ANSWER_MAX_BYTES`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from healkit.core.contracts.failure import ClaimedNumber, ClaimedShape, KeptFrame, Local
from healkit.core.wire import claims

#: Jupyter's `msg_type` of a question; that of the answer ends in `_reply`.
REQUEST, REPLY = "healkit_post_mortem_request", "healkit_post_mortem_reply"
#: Limit of an answer, in bytes.
ANSWER_MAX_BYTES = 1024 * 1024
#: Limits of the frames, and of one frame's locals, in an answer.
FRAMES_MAX, LOCALS_MAX = 200, 200


class FrameSource(msgspec.Struct, frozen=True):
    """Code around a frame: `text` starts at line `first_lineno`, the frame is at `lineno`."""

    text: str
    first_lineno: ClaimedNumber
    lineno: ClaimedNumber


class EvalResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of an expression: its value as type, shape and short repr, or the exception (`ename`, `evalue`).

    `output` is what it printed, cut.
    """

    type: str = ""
    repr: str = ""
    shape: ClaimedShape | None = None
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
    """Question for one frame's locals, as previews, or as their own reprs within a time limit."""

    frame: int
    in_passing: bool = False


class AskSource(msgspec.Struct, frozen=True, tag="source"):
    """Question for the code of one frame."""

    frame: int


class AskEval(msgspec.Struct, frozen=True, tag="eval"):
    """Question for the value of an expression in one frame, within a time limit."""

    frame: int
    expression: str
    timeout_s: float


class AskConsole(msgspec.Struct, frozen=True, tag="console"):
    """Request to make one frame's names available at the prompt of a console that will attach."""

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
    """Answer for a failed question, with the reason."""

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
    """Decode an answer; raises `claims.BadClaim` for an invalid or too large one."""
    return claims.decode(data, _answer.decode, max_bytes=ANSWER_MAX_BYTES)


def encode(message: Question | Answer) -> str:
    """Encode a question or an answer as the text that travels."""
    return _encoder.encode(message).decode()

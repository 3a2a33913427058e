"""Post-mortem: questions to the worker of a failed run.

Everything is computed in the worker, under the restrictions of the execution and with a time limit for each question.
The host does not trust the answers. A bridged call (`mcp.…`) gets no answer any more: the execution is over, and on
record.
"""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from healkit.core.contracts.failure import KeptFrame, Local
from healkit.core.rendering import cleaning, execution_card, plain
from healkit.core.rendering.to_html import html_of
from healkit.core.rendering.to_text import text_of
from healkit.core.runtime import background
from healkit.core.secrets.cleaner import UNLIMITED, RecordCleaner
from healkit.errors import PostMortemError, PostMortemGone
from healkit.parts.post_mortem import questions as pm
from healkit.parts.post_mortem.questions import EvalResult, FrameSource
from healkit.parts.post_mortem.retained import let_go, retained_worker

T = TypeVar("T")
A = TypeVar("A", bound=pm.Answer)

#: Limit of a question that has no timeout of its own.
_ANSWER_S = 3.0
#: Of a deep recursion, only the last calls are shown: each frame is a question.
SHOWN_FRAMES = 12


def presentable(text: str, name: str = "", record: RecordCleaner | None = None) -> str:
    """Return a value in a form that may be shown under that name: without secrets and personal data.

    record: The cleaner of the text that is shown beside it.
    """
    cleaner = record or cleaning.sanitizer()
    if not name:
        return str(cleaner.text(text).value)
    cleaned = cleaner.clean({name: text}, limit_bytes=UNLIMITED)
    return str(cleaned.value.get(name, "")) if cleaned.hidden and isinstance(cleaned.value, dict) else text


class PostMortem:
    """Failed execution whose frames can be inspected while its worker is kept; from `Execution.post_mortem()`.

    Frames are numbered from the outermost, 0; the default is the tool's innermost frame. Each method raises
    `PostMortemGone` if the worker no longer exists, and `PostMortemError` if it has no answer.
    """

    def __init__(self, trace_id: str, label: str) -> None:
        self.trace_id = trace_id
        self.label = label
        self._frames = self._ask(pm.AskFrames(), pm.Frames).frames

    def frames(self, *, libraries: bool = False) -> list[KeptFrame]:
        """Return the tool's own frames, outermost first; with `libraries`, also those of the code that it called."""
        return [frame for frame in self._frames if libraries or frame.in_tool]

    def locals(self, frame: KeptFrame | int | None = None) -> list[Local]:
        """Return a frame's local variables: name, type, shape if there is one, and a short repr."""
        return self._presentable([self._ask(pm.AskLocals(self._number(frame)), pm.Locals).locals])[0]

    @staticmethod
    def _presentable(frames: list[list[Local]]) -> list[list[Local]]:
        """Return the locals of some frames without secrets; a value that is hidden in one frame is hidden in all."""
        record = cleaning.sanitizer().of_record()
        for _ in range(2):  # the second time, all that are hidden are known
            cleaned = [
                [
                    msgspec.structs.replace(variable, repr=presentable(variable.repr, variable.name, record))
                    for variable in variables
                ]
                for variables in frames
            ]
        return cleaned

    def previews(self, frame: KeptFrame | int | None = None) -> list[Local]:
        """Return the locals in the form of a card: fast, because no `__repr__` of the tool is called.

        Nothing is hidden yet: the caller cleans them before showing them.
        """
        return self._ask(pm.AskLocals(self._number(frame), in_passing=True), pm.Locals).locals

    def source(self, frame: KeptFrame | int | None = None) -> FrameSource:
        """Return the code of a frame's function, and its current line."""
        return self._ask(pm.AskSource(self._number(frame)), pm.SourceFound).source

    def eval(
        self, expression: str, frame: KeptFrame | int | None = None, *, timeout: float = 5.0
    ) -> EvalResult:
        """Evaluate a Python expression in a frame, within `timeout` seconds; return its value, or its exception.

        Changes that it makes remain for the next question.
        """
        question = pm.AskEval(self._number(frame), expression, timeout)
        done = self._ask(question, pm.EvalDone, timeout).evaluated
        return msgspec.structs.replace(
            done,
            repr=presentable(done.repr),
            output=presentable(done.output),
            evalue=presentable(done.evalue),
        )

    def attach(self, frame: KeptFrame | int | None = None) -> Path:
        """Return the worker's connection file, for any Jupyter client: a real kernel with the same restrictions.

        Its prompt has the names of the frame, and `%debug` enters the failed stack. Its time limit starts again, as
        after any question.
        """
        number = self._number(frame) if self._frames else None
        return self._run(self._attach(number))

    def console(self, frame: KeptFrame | int | None = None) -> None:
        """Open a Jupyter console on the worker in this terminal, and return when the user leaves it.

        Needs a terminal and the extra `healkit[console]`; otherwise raises `PostMortemError` with the command to type
        instead.
        """
        file = self.attach(frame)
        typed = f"jupyter console --existing {shlex.quote(str(file))}"
        if importlib.util.find_spec("jupyter_console") is None:
            raise PostMortemError(
                "A console needs the package jupyter_console.",
                hint=f"Run pip install 'healkit[console]', then, in any terminal: {typed}",
            )
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise PostMortemError(
                "There is no terminal here for a console.", hint=f"Open one and type: {typed}"
            )
        self._run(retained_worker(self.trace_id, hold=True))
        try:
            command = [sys.executable, "-P", "-m", "jupyter_console", "--existing", str(file)]
            subprocess.run(command, check=False)
        finally:
            try:
                self._run(retained_worker(self.trace_id))  # its time goes on from here
            except PostMortemGone:
                pass  # ended from within

    def close(self) -> None:
        """Release the worker before its time limit; safe to call twice."""
        self._run(let_go(self.trace_id))

    def all_locals(self, frames: int = SHOWN_FRAMES) -> list[tuple[KeptFrame, list[Local]]]:
        """Return the tool's innermost frames, up to a maximum, each with its locals."""
        chosen = self.frames()[-frames:]
        answers = [self._ask(pm.AskLocals(frame.number), pm.Locals).locals for frame in chosen]
        return list(zip(chosen, self._presentable(answers), strict=True))

    def to_text(self) -> str:
        """Write the tool's frames with their locals, as plain text."""
        return text_of(execution_card.locals_card(self.all_locals()))

    def to_html(self) -> str:
        """Write the same as static HTML."""
        return html_of(execution_card.locals_card(self.all_locals()))

    def __repr__(self) -> str:
        return f"<PostMortem of {self.label}, {plain.count(len(self._frames), 'frame')}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return what Jupyter shows; called by IPython's display formatter."""
        try:
            card = execution_card.locals_card(self.all_locals())
        except PostMortemError as error:
            return {"text/plain": f"{self!r}: {error}"}
        return {"text/plain": text_of(card), "text/html": html_of(card)}

    def _number(self, frame: KeptFrame | int | None) -> int:
        if isinstance(frame, KeptFrame):
            return frame.number
        if frame is not None:
            return frame
        if not self._frames:
            raise PostMortemError(f"{self.label} failed outside any of its own frames.")
        return (self.frames() or self._frames)[-1].number

    def _ask(self, question: pm.Question, kind: type[A], timeout_s: float = _ANSWER_S) -> A:
        answer = self._run(self._answer(question, timeout_s))
        if not isinstance(answer, kind):
            raise PostMortemError("The worker of the failed execution answered a different question.")
        return answer

    async def _answer(self, question: pm.Question, timeout_s: float) -> pm.Answer:
        return await (await retained_worker(self.trace_id)).ask(question, timeout_s)

    async def _attach(self, number: int | None) -> Path:
        return await (await retained_worker(self.trace_id)).attach(number)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return background.loop.wait_for(work)

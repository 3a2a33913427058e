"""How a question to a model stands, as data and in sentences."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

#: While an answer comes, a sentence is said so often at most.
_EVERY_S = 1.0


@dataclasses.dataclass(frozen=True)
class Progress:
    """How a question stands: `attempt` counts questions from 1.

    `received_chars` of the answer are there; `wait_s` is how long it waits before it asks again, 0 while it does not.
    `why` says what it waits for.
    """

    attempt: int
    received_chars: int = 0
    wait_s: float = 0.0
    why: str = ""


class Teller:
    """Says in sentences what `Progress` says as data; a long answer is told of once a second."""

    def __init__(self, model: str, say: Callable[[str], None]) -> None:
        self._model, self._say = model, say
        self._said_at = 0.0

    def __call__(self, progress: Progress) -> None:
        """One step."""
        if progress.wait_s:
            self._say(f"{self._model}: {progress.why} Asked again in {progress.wait_s:.1f} s.")
        elif not progress.received_chars:
            self._say(f"{self._model}: question {progress.attempt}.")
        elif (now := time.monotonic()) - self._said_at >= _EVERY_S:
            self._said_at = now
            self._say(f"{self._model}: {progress.received_chars:,} characters of an answer so far.")

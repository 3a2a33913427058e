"""Choosers: who decides what is done next.

Each gets the same closed metadata, a `Turn`, and answers with a choice: a dict such as `{"type": "execute_data_op",
"tool": "by_region", "params": {"df": "sales"}, "viewName": "totals"}`.

The language model, its address, its key and its limits are those of healing (docs/models.md). A question to it contains
the fixed rules and functions of `prompts.toml`, and the turn, exactly as a person sees it. Nothing else is sent, and
nothing of earlier questions: the turn contains the steps so far.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from healkit.config import Config
from healkit.errors import ModelError, ModelInputTooLarge, ModelRefused, UsageInvalid
from healkit.parts.decide.records import EntityQuestion, Turn

if TYPE_CHECKING:
    from healkit.parts.models.client import ModelClient
    from healkit.parts.models.protocols import Reply

_EXAMPLE = 'Such as: {"type": "finalize", "finalViewName": "sales"}'


class Chooser(Protocol):
    """Decides on the next step.

    A chooser whose attribute `told_in_full` is true gets exact counts. Any other gets rounded counts of results,
    because it may send them away.

    A chooser that waits for a person may also have `prepare(stop)`. It is called once, before the run begins, with the
    event that ends the decision. It raises a `HealkitError` if choosing is impossible.
    """

    #: Name in the record of the decision.
    name: str

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Return the next choice, or None to end without a result; called by the loop once a turn.

        An invalid choice leads to one more call, with the reason in `turn.problem`. A `HealkitError` raised here halts
        the decision.
        """
        ...


def told(turn: Turn) -> str:
    """Return a turn as text: exactly what a model or a person gets."""
    return msgspec.json.format(msgspec.json.encode(turn), indent=1).decode()


def ask_person(
    question: EntityQuestion, read: Callable[[str], str] = input, show: Callable[[str], object] = print
) -> Any:
    """Ask the data's owner which value is meant, by its number or its text; return None for no answer."""
    of_column = "" if question.column is None else f" in {question.column}"
    show(f"{question.entity!r} may mean one of several values{of_column}:")
    for number, candidate in enumerate(question.candidates, 1):
        show(f"  {number}  {candidate}")
    try:
        answer = read("Which one do you mean (empty: none)? ").strip()
    except EOFError:
        return None
    numbered = {str(number): candidate for number, candidate in enumerate(question.candidates, 1)}
    by_text = {str(candidate): candidate for candidate in question.candidates}
    return by_text.get(answer, numbered.get(answer))


class Plan:
    """Steps that are known in advance, taken in order; the plan ends with the first failure.

    steps: Choices, each data operation with an `intended` state if one is expected.
    taken: How many of them an earlier run of the decision has taken.
    """

    name = "plan"
    told_in_full = True

    def __init__(self, steps: Iterable[Mapping[str, Any]], taken: int = 0) -> None:
        self.steps = list(steps)
        self._next = taken

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Return the next step; None after a failed or invalid step, and at the end."""
        failed = bool(turn.steps) and not turn.steps[-1].success
        if turn.problem is not None or failed or self._next >= len(self.steps):
            return None
        self._next += 1
        return self.steps[self._next - 1]


class Person:
    """Person at a terminal, who sees what a model would get.

    read: Returns a line that was typed in answer to a prompt, or raises EOFError.
    show: Prints a text.
    """

    name = "person"
    told_in_full = True

    def __init__(self, read: Callable[[str], str] = input, show: Callable[[str], object] = print) -> None:
        self._read, self._show = read, show

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Show the turn, and return the typed choice in JSON; None for an empty line."""
        self._show(told(turn))
        while True:
            try:
                line = self._read("Choice, as JSON in one line (empty to stop): ").strip()
            except EOFError:
                return None
            if not line:
                return None
            try:
                choice = json.loads(line)
            except ValueError as error:
                self._show(f"Not JSON: {error}. {_EXAMPLE}")
                continue
            if isinstance(choice, dict):
                return choice
            self._show(f"A choice is a JSON object, in braces. {_EXAMPLE}")


# The language model as a chooser.


#: Braces of an answer in words that are tried as the beginning of a choice.
_BRACES_MAX = 50
#: Function that a model may call: its name, its description, and the JSON schema of its parameters.
Function = tuple[str, str, dict[str, Any]]


@functools.cache
def prompts() -> dict[str, Any]:
    """Return the fixed texts for a model: the rules of a `chooser` and an `analyst`, and `functions`."""
    return tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))


def choice_functions() -> tuple[Function, ...]:
    """Return the four choices, as functions."""
    return tuple(
        (
            entry["name"],
            entry["description"],
            {
                "type": "object",
                "properties": {name: prompts()["parameters"][name] for name in entry["parameters"]},
                "required": entry["required"],
                "additionalProperties": False,
            },
        )
        for entry in prompts()["functions"]
    )


class ModelQuestions:
    """Questions to the configured model, each with a limit of twice `heal_model_timeout_s`, pauses included.

    `usage` adds up `requests`, `input_tokens` and `output_tokens`.
    """

    def __init__(self, config: Config | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.usage: Counter[str] = Counter()
        self._config = config or Config.from_environment()
        self._environ = os.environ if environ is None else environ
        self._client: ModelClient | None = None
        self._stop = threading.Event()
        self._until = 0.0

    def prepare(self, stop: threading.Event) -> None:
        """End a question when `stop` is set; raise `UsageInvalid` if no model is available."""
        self._stop = stop
        self._opened()

    def ask(self, rules: str, turn: Turn, functions: tuple[Function, ...] = ()) -> Reply:
        """Return the model's complete answer; raise `ModelError` and its kinds, or `BudgetSpent`."""
        from healkit.parts.models import protocols

        user = told(turn)
        size, limit = len(user.encode()), self._config.heal_model_input_max_bytes
        if size > limit:
            raise ModelInputTooLarge(
                f"The turn has {size:,} bytes, but at most {limit:,} may be sent to the model.",
                hint="Use fewer tools or narrower data, or raise heal_model_input_max_bytes.",
            )
        client = self._opened()
        self._until = time.monotonic() + 2 * self._config.heal_model_timeout_s
        prompt = protocols.Prompt(rules, user, tuple(protocols.Function(*function) for function in functions))
        before = client.requests
        try:
            reply = client.ask(prompt, turn.number)
        finally:
            self.usage["requests"] += client.requests - before
        self.usage["input_tokens"] += reply.input_tokens or 0
        self.usage["output_tokens"] += reply.output_tokens or 0
        if reply.ending == "refused":
            raise ModelRefused(f"The model {client.model!r} declined.", hint="Ask another model.")
        if reply.ending == "length":
            raise ModelError(
                f"The answer of the model {client.model!r} was cut off in the middle.",
                hint="Raise heal_model_max_tokens.",
            )
        return reply

    def _opened(self) -> ModelClient:
        if self._client is None:
            from healkit.parts.models.client import ModelClient
            from healkit.parts.models.model_endpoint import find_endpoint

            endpoint, status = find_endpoint(self._config, self._environ)
            if endpoint is None:
                raise UsageInvalid(status.why)
            self._client = ModelClient(endpoint, self._config, self._left_s, lambda _: None)
        return self._client

    def _left_s(self) -> float:
        return 0.0 if self._stop.is_set() else max(0.0, self._until - time.monotonic())


class ModelChooser(ModelQuestions):
    """Chooser that asks the configured model; the model gets only what `told(turn)` returns.

    config: By default the environment's.
    environ: The variables to search for keys, by default the process's.
    """

    name = "model"

    def choose(self, turn: Turn) -> Any:
        """Return the model's choice, or its words if it made none; the loop refuses those, with the reason.

        If an answer has several calls, the first counts: the next turn shows its result.
        """
        reply = self.ask(prompts()["chooser"], turn, choice_functions())
        if not reply.calls:
            return _choice_in(reply.text)
        call = reply.calls[0]
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return call.arguments
        return {**arguments, "type": call.name} if isinstance(arguments, dict) else arguments


def _choice_in(text: str) -> Any:
    """Return the first JSON object with a type in a text, also among words or in a fence; otherwise the text."""
    decoder, start = json.JSONDecoder(), -1
    for _ in range(_BRACES_MAX):
        start = text.find("{", start + 1)
        if start < 0:
            break
        with suppress(ValueError, RecursionError):
            choice, _end = decoder.raw_decode(text, start)
            if isinstance(choice, dict) and "type" in choice:
                return choice
    return text

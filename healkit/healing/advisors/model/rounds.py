"""The questions of one case, what was answered, and what became of it."""

from __future__ import annotations

import re

from healkit.contracts.healing import Attempt, Patch
from healkit.errors import ModelError, ModelRefused
from healkit.healing.advisor import Case
from healkit.healing.advisors.model.answer_parser import ModelAnswer, UnusableAnswer, read_answer, same_code
from healkit.healing.advisors.model.client import ModelClient
from healkit.healing.advisors.model.prompt import Briefing
from healkit.healing.advisors.model.protocol import Reply
from healkit.healing.advisors.model.spending import Spending
from healkit.sanitizer.secret_map import SecretMap
from healkit.tracing.delivery import readable

_MARK = re.compile(r"\[REDACTED:[\w-]+\]")


class Rounds:
    """Asks, reads and remembers; `unusable` says what was wrong with the last answer, where nothing could be used.

    spending: what all cases took, and what no patch carries yet.
    """

    def __init__(
        self,
        case: Case,
        briefing: Briefing,
        secret_map: SecretMap,
        client: ModelClient,
        spending: tuple[Spending, Spending],
    ) -> None:
        self._case, self._briefing, self._secret_map, self._client = case, briefing, secret_map, client
        self._total, self._since_patch = spending
        self._tried = [attempt.patch.code for attempt in case.attempts]
        self._told = [briefing.attempt(attempt) for attempt in case.attempts]
        self.unusable = ""

    def ask(self, number: int) -> Patch | None:
        """One question; None where nothing in the answer can be used, which the next question then says."""
        self.unusable = ""
        try:
            answer = self._read(self._reply(number))
        except UnusableAnswer as unusable:
            self.unusable = readable(self._secret_map.text(str(unusable)))
            self._told.append(self._briefing.unusable(str(unusable)))
            return None
        self._tried.append(answer.code)
        return Patch(
            code=answer.code,
            advisor="model",
            author="model",
            reason=readable(self._secret_map.text(answer.reason)),
            rank=float(number),  # it has seen why the ones before would not do
            cost=self._since_patch.taken(),
        )

    def learn(self, patch: Patch, attempt: Attempt | None) -> None:
        """What became of a patch, for the next question; without a word on it, only that it was not taken."""
        told = self._briefing.refused(patch.code) if attempt is None else self._briefing.attempt(attempt)
        self._told.append(told)

    def _reply(self, number: int) -> Reply:
        prompt = self._briefing.prompt(self._told)
        before = self._client.requests
        try:
            reply = self._client.ask(prompt, number)
        finally:
            self._count("requests", self._client.requests - before)
        self._count("input_tokens", reply.input_tokens)
        self._count("output_tokens", reply.output_tokens)
        if reply.ending == "refused":
            said = readable(self._secret_map.text(reply.text))
            raise ModelRefused(
                f"The model {self._client.model!r} declined" + (f": {said}" if said else "."),
                hint="Ask another model, or another advisor.",
            )
        if reply.ending == "length":
            raise ModelError(
                f"The answer of the model {self._client.model!r} was cut off in the middle.",
                hint="Raise heal_model_max_tokens, or its context if the server has a smaller one.",
            )
        return reply

    def _count(self, name: str, count: int | None) -> None:
        if count is not None:
            self._total.add({name: count})
            self._since_patch.add({name: count})

    def _read(self, reply: Reply) -> ModelAnswer:
        answer = read_answer(self._secret_map.restored(reply.text), self._case.entry)
        if any(same_code(answer.code, code, self._case.entry.type) for code in self._tried):
            raise UnusableAnswer("The code in the answer was tried before.")
        for mark in set(_MARK.findall(answer.code)) - set(_MARK.findall(self._case.entry.code)):
            raise UnusableAnswer(f"The code in the answer holds {mark}, which stands for nothing here.")
        return answer

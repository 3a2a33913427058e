"""Advisor that asks a language model.

A round is one question and one answer. The generator yields each usable answer as a patch, and takes back its attempt
(`attempt = advisor.send(…)`), so that the next question says why the last answer failed. Drawn with a plain `for`, it
works too; the model is then only told that the answer was not taken.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Literal

from healkit.config import Config
from healkit.contracts.healing import Attempt, Patch
from healkit.errors import BudgetSpent, HealkitError, ModelError, ModelRefused, PostMortemError
from healkit.healing.advisor import Case, Workbench
from healkit.healing.advisors.model.answer_parser import ModelAnswer, UnusableAnswer, read_answer, same_code
from healkit.healing.advisors.model.prompt import Briefing, Stack
from healkit.healing.diagnosis import diagnose
from healkit.language_models.client import ModelClient
from healkit.language_models.model_endpoint import Availability, find_endpoint
from healkit.language_models.protocols import Progress, Prompt, Reply
from healkit.rendering import plain
from healkit.runtime.post_mortem import SHOWN_FRAMES, PostMortem
from healkit.sanitizer import Sanitizer
from healkit.sanitizer.secret_map import SecretMap
from healkit.tracing.delivery import readable

#: Number of checks that are observed to learn the types of variables.
_WATCHED_MAX = 3
#: Verdicts after which no check could tell that another answer is better.
_ENOUGH = frozenset({"cured", "unproven"})
#: Interval between two sentences on an answer that is being received.
_EVERY_S = 1.0
_MARK = re.compile(r"\[REDACTED:[\w-]+\]")


class ModelAdvisor:
    """Advisor that asks the configured model for patches; without one it yields and sends nothing.

    locals_of: returns the failed run's frames with their locals, for types and shapes; by default those of its retained
        worker. Where it raises `PostMortemError` or returns nothing, a failing check is observed, which gives types.
    on_progress: called in the thread that draws, while the model answers.
    environ: the variables to search for keys, by default the process's environment.

    `spending` adds up over all cases. `hidden` counts, by the sanitiser's rule, the texts withheld from the model.
    """

    name = "model"
    author: Literal["person", "rule", "search", "model", "agent"] = "model"

    def __init__(
        self,
        config: Config,
        *,
        locals_of: Callable[[Case], Stack] | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._locals_of, self._on_progress = locals_of or retained_locals, on_progress
        self._environ = os.environ if environ is None else environ
        self.spending = Spending(config)
        self._unclaimed = Spending(config)
        self.hidden: Counter[str] = Counter()

    def available(self) -> Availability:
        """Look for a model, and say why if none can be asked; send nothing."""
        return find_endpoint(self._config, self._environ)[1]

    @property
    def unavailable(self) -> str:
        """Reason why no model can be asked; empty if one can. The loop then skips this advisor and says so."""
        return self.available().why

    @property
    def unclaimed(self) -> dict[str, float]:
        """Cost since the last patch, which no patch carries; the loop adds it to the report's cost."""
        return self._unclaimed.cost()

    @property
    def remarks(self) -> list[str]:
        """Sentences for the report: how much was withheld from the model."""
        if not self.hidden:
            return []
        kinds = ", ".join(f"{count} {rule}" for rule, count in sorted(self.hidden.items()))
        total = self.hidden.total()
        were = f"{plain.count(total, 'text')} {'was' if total == 1 else 'were'}"
        return [f"{were} withheld from {self._config.heal_model}: {kinds}."]

    def listen(self, say: Callable[[str], None]) -> None:
        """Tell progress in sentences from now on; called by the loop before it asks."""
        self._on_progress = ProgressSentences(self._config.heal_model, say)

    def preview(self, case: Case, bench: Workbench | None = None) -> Prompt:
        """Return the first question on a case, word for word but for the markers' number; send nothing.

        Without a bench no check is observed. Raises `ModelInputTooLarge`.
        """
        secret_map = SecretMap(Sanitizer.from_config(self._config))
        briefing = self._brief(case, bench, secret_map)
        return briefing.prompt([briefing.attempt(attempt) for attempt in case.attempts])

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Yield patches for the case, each after one question; `send` takes the attempt with the one before.

        Raises `BudgetSpent`, `ModelInputTooLarge`, `ModelKeyRefused`, `ModelUnavailable`, `ModelRefused` where the last
        answer held no code, and `ModelError`.
        """
        endpoint, _ = find_endpoint(self._config, self._environ)
        if endpoint is None:
            return
        secret_map = SecretMap(Sanitizer.from_config(self._config), self.hidden)
        client = ModelClient(endpoint, self._config, lambda: bench.left_s, self._on_progress)
        conversation = Conversation(
            case, self._brief(case, bench, secret_map), secret_map, client, (self.spending, self._unclaimed)
        )
        for number in range(1, self._config.heal_model_attempts + 1):
            patch = conversation.ask(number)
            if patch is not None:
                attempt = yield patch
                if attempt is not None and attempt.verdict in _ENOUGH:
                    return
                conversation.learn(patch, attempt)
        if conversation.unusable:
            raise ModelRefused(
                f"The model {endpoint.model!r} gave no answer that can be used: {conversation.unusable}",
                hint="Try again, or take another model.",
            )

    def __repr__(self) -> str:
        return f"<ModelAdvisor {self._config.heal_model!r}>"

    def _brief(self, case: Case, bench: Workbench | None, secret_map: SecretMap) -> Briefing:
        stack = self._stack(case)
        return Briefing(
            case,
            secret_map,
            diagnosis=diagnose(case.entry, case.failure, case.checks).sentence,
            stack=stack,
            types={} if stack else self._types(case, bench),
            values=self._config.heal_model_values,
            max_bytes=self._config.heal_model_input_max_bytes,
        )

    def _stack(self, case: Case) -> Stack:
        """Return the failed run's variables, while its worker is retained."""
        try:
            return self._locals_of(case)
        except PostMortemError:
            return ()

    def _types(self, case: Case, bench: Workbench | None) -> dict[str, list[str]]:
        """Return types of variables in observed runs, failing ones if possible; none for a tool with side effects."""
        entry = case.entry
        checks = (case.failing or tuple(check for check in case.checks if check.binding))[:_WATCHED_MAX]
        if bench is None or not checks or entry.type != "python" or entry.flags.get("side_effects"):
            return {}
        try:
            observed = bench.observe(entry.code, checks)
        except BudgetSpent:
            raise
        except HealkitError:  # no worker can be had: the model then sees the code alone
            return {}
        failed = [one for one in observed if one.result.outcome != "passed"] or observed
        types: dict[str, list[str]] = {}
        for name, seen in (item for one in failed for item in one.types.items()):
            types[name] = sorted({*types.get(name, ()), *seen})
        return types


def retained_locals(case: Case) -> Stack:
    """Preview the locals of the tool's innermost frames, without running any code of the tool.

    Raises `PostMortemError` where the failed run's worker is gone.
    """
    if not case.trace_id:
        return ()
    asked = PostMortem(case.trace_id, case.entry.label)
    return [(frame, asked.previews(frame)) for frame in asked.frames()[-SHOWN_FRAMES:]]


class Conversation:
    """Questions on one case, their answers, and the verdicts on them.

    `unusable` says what was wrong with the last answer, where it held nothing usable. spending: the cost of all cases,
    and the cost that no patch carries yet.
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
        """Ask one question; return None for an unusable answer, which the next question mentions."""
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
        """Add the attempt with a patch to the next question; without an attempt, that it was not taken."""
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


class Spending:
    """Sum of costs; `counts` has `requests`, and `input_tokens` and `output_tokens` as far as servers send them."""

    def __init__(self, config: Config) -> None:
        self._input_usd = config.heal_model_input_usd_per_mtok
        self._output_usd = config.heal_model_output_usd_per_mtok
        self.counts: dict[str, int] = {}

    def add(self, counts: dict[str, int]) -> None:
        """Add the cost of one question."""
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    @property
    def usd(self) -> float:
        """Cost in US dollars by the configured prices; 0 without any."""
        counts = self.counts
        read, written = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
        return (read * self._input_usd + written * self._output_usd) / 1e6

    def cost(self) -> dict[str, float]:
        """Return the cost as a patch carries it: the counts, and `usd` only where a price is configured."""
        priced = bool(self._input_usd or self._output_usd)
        return {**self.counts, **({"usd": self.usd} if priced else {})}

    def taken(self) -> dict[str, float]:
        """Return the cost so far, and start again from zero."""
        cost, self.counts = self.cost(), {}
        return cost


class ProgressSentences:
    """Says `Progress` in sentences; about a long answer, once a second."""

    def __init__(self, model: str, say: Callable[[str], None]) -> None:
        self._model, self._say = model, say
        self._said_at = 0.0

    def __call__(self, progress: Progress) -> None:
        """Say one step."""
        if progress.wait_s:
            self._say(f"{self._model}: {progress.why} Asked again in {progress.wait_s:.1f} s.")
        elif not progress.received_chars:
            self._say(f"{self._model}: question {progress.attempt}.")
        elif (now := time.monotonic()) - self._said_at >= _EVERY_S:
            self._said_at = now
            self._say(f"{self._model}: {progress.received_chars:,} characters of an answer so far.")

"""The advisor that asks a language model.

Each round is one question and one answer. The generator yields what can be a candidate, and takes back what became of
it: `attempt = advisor.send(…)`, so that the next question says why the last answer would not do. Drawn with a plain
`for`, it still works; the model is then only told that the answer was not taken.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Literal

from healkit.config import Config
from healkit.contracts.healing import Attempt, Patch
from healkit.errors import BudgetSpent, HealkitError, ModelRefused, PostMortemError
from healkit.healing.advisor import Case, Workbench
from healkit.healing.advisors.model.client import ModelClient
from healkit.healing.advisors.model.endpoint import Availability, find_access
from healkit.healing.advisors.model.progress import Progress, Teller
from healkit.healing.advisors.model.prompt import Briefing, Stack
from healkit.healing.advisors.model.protocol import Prompt
from healkit.healing.advisors.model.rounds import Rounds
from healkit.healing.advisors.model.spending import Spending
from healkit.healing.diagnosis import diagnose
from healkit.rendering import plain
from healkit.runtime.post_mortem import SHOWN_FRAMES, PostMortem
from healkit.sanitizer import Sanitizer
from healkit.sanitizer.secret_map import SecretMap

#: How many checks are watched to learn the types of variables.
_WATCHED_MAX = 3
#: The verdicts after which another answer of the model could not be known to be better.
_ENOUGH = frozenset({"cured", "unproven"})


class ModelAdvisor:
    """Asks the configured model for patches; without one it yields nothing and sends nothing.

    locals_of: the failed run's frames with their locals, for types and shapes; by default as its worker still holds
        them. Where it raises `PostMortemError` or gives nothing, a failing check is observed, which gives types.
    on_progress: called in the thread that draws, while the model answers.
    environ: where keys are looked for, by default the process's environment.

    `spending` adds up over all cases. `hidden` counts, by the sanitiser's rule, what was withheld from the model.
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
        self._locals_of, self._on_progress = locals_of or kept_locals, on_progress
        self._environ = os.environ if environ is None else environ
        self.spending = Spending(config)
        self._unclaimed = Spending(config)
        self.hidden: Counter[str] = Counter()

    def available(self) -> Availability:
        """Whether a model can be asked, and if not, why; sends nothing."""
        return find_access(self._config, self._environ)[1]

    @property
    def unavailable(self) -> str:
        """Why it cannot be asked; empty where it can. The loop leaves it out then, and says so."""
        return self.available().why

    @property
    def unclaimed(self) -> dict[str, float]:
        """What was spent since the last patch, so that no patch carries it; the loop adds it to the report's cost."""
        return self._unclaimed.cost()

    @property
    def remarks(self) -> list[str]:
        """What the report should say beside the patches: how much was withheld from the model."""
        if not self.hidden:
            return []
        kinds = ", ".join(f"{count} {rule}" for rule, count in sorted(self.hidden.items()))
        total = self.hidden.total()
        were = f"{plain.count(total, 'text')} {'was' if total == 1 else 'were'}"
        return [f"{were} withheld from {self._config.heal_model}: {kinds}."]

    def listen(self, say: Callable[[str], None]) -> None:
        """Tell progress in sentences from now on; called by the loop before it asks."""
        self._on_progress = Teller(self._config.heal_model, say)

    def preview(self, case: Case, bench: Workbench | None = None) -> Prompt:
        """What the first question on a case would be, word for word but for the markers' number; sends nothing.

        Without a bench nothing is observed either. Raises `ModelInputTooLarge`.
        """
        secret_map = SecretMap(Sanitizer.from_config(self._config))
        briefing = self._brief(case, bench, secret_map)
        return briefing.prompt([briefing.attempt(attempt) for attempt in case.attempts])

    def propose(self, case: Case, bench: Workbench) -> Generator[Patch, Attempt | None, None]:
        """Patches for the case, each after one question; `send` takes what became of the one before.

        Raises `BudgetSpent`, `ModelInputTooLarge`, `ModelKeyRefused`, `ModelUnavailable`, `ModelRefused` where the last
        answer held no code, and `ModelError`.
        """
        access, _ = find_access(self._config, self._environ)
        if access is None:
            return
        secret_map = SecretMap(Sanitizer.from_config(self._config), self.hidden)
        client = ModelClient(access, self._config, lambda: bench.left_s, self._on_progress)
        rounds = Rounds(
            case, self._brief(case, bench, secret_map), secret_map, client, (self.spending, self._unclaimed)
        )
        for number in range(1, self._config.heal_model_attempts + 1):
            patch = rounds.ask(number)
            if patch is not None:
                attempt = yield patch
                if attempt is not None and attempt.verdict in _ENOUGH:
                    return
                rounds.learn(patch, attempt)
        if rounds.unusable:
            raise ModelRefused(
                f"The model {access.model!r} gave no answer that can be used: {rounds.unusable}",
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
        """The failed run's variables, while its worker is kept."""
        try:
            return self._locals_of(case)
        except PostMortemError:
            return ()

    def _types(self, case: Case, bench: Workbench | None) -> dict[str, list[str]]:
        """Types of variables in runs that are watched, failing ones if there are; none of a tool with side effects."""
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


def kept_locals(case: Case) -> Stack:
    """The tool's innermost frames with their locals, seen in passing: nothing of the tool's own runs for it.

    Raises `PostMortemError` where the failed run's worker is not kept any more.
    """
    if not case.trace_id:
        return ()
    asked = PostMortem(case.trace_id, case.entry.label)
    return [(frame, asked.previews(frame)) for frame in asked.frames()[-SHOWN_FRAMES:]]

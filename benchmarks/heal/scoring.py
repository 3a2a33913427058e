"""Scorer: compares patches with what is right.

The only code that opens the hidden files. It runs patches itself, restricted, in a Healkit of its own, so that neither
the healer's word nor its database has a part in the verdict.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from heal.programs import WRITTEN, Example, Program, tables
from heal.world import World

import healkit
from healkit import Config, Healkit
from healkit.core.crossing import values
from healkit.core.runtime.execution import Execution
from healkit.errors import HealkitError
from healkit.parts.trials.trials import Trial, TrialResult

_HIDDEN = Path(__file__).parent / "hidden"
_HIDDEN_OF_GALLERY = Path(healkit.__file__).parent / "parts" / "teach" / "gallery" / "hidden_examples.json"

#: `call` examples are run as a script of this name, which no program has.
_SCRIPT = "scored_call"
#: A right answer may take longer on a busy machine than a hanging one should cost.
TRIAL_TIMEOUT_S = 8.0


def hidden_examples(set_name: str) -> dict[str, list[Example]]:
    """Return the examples that no healer sees, by the program's name, of a written set or of `gallery`."""
    if set_name in WRITTEN:
        return {name: table["examples"] for name, table in _hidden(set_name).items()}
    examples: dict[str, list[Example]] = json.loads(_HIDDEN_OF_GALLERY.read_text(encoding="utf-8"))
    return examples


def reference(name: str, set_name: str = "own") -> str:
    """Return the right code for a tool of a written set."""
    code: str = _hidden(set_name)[name]["code"]
    return code


def _hidden(set_name: str) -> dict[str, dict[str, Any]]:
    return tables(_HIDDEN / f"{set_name}.toml")


class Judge:
    """Runner of code on examples, for as long as the `with` block lasts."""

    def __init__(self, folder: Path) -> None:
        config = Config(start_timeout_s=30, tracing=False)
        self._healkit = Healkit(folder / "judge.db", config=config)
        self._live = Healkit(folder / "live.db", config=config)
        self._world = World()
        self._world.install(self._live)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._healkit.close()
        self._live.close()

    def results(
        self, codes: Sequence[str], name: str, examples: Iterable[Example], timeout_s: float = TRIAL_TIMEOUT_S
    ) -> list[list[TrialResult]]:
        """Return what each code does with each example."""
        chosen = list(examples)
        done = iter(self.each(((code, name, example) for code in codes for example in chosen), timeout_s))
        return [[next(done) for _ in chosen] for _ in codes]

    def each(
        self, cases: Iterable[tuple[str, str, Example]], timeout_s: float = TRIAL_TIMEOUT_S
    ) -> list[TrialResult]:
        """Return the results of each code, name and example; many at once share the processors."""
        return self.run([trial(*case, timeout_s) for case in cases])

    def run(self, trials: Sequence[Trial]) -> list[TrialResult]:
        """Return the results of trials, in their order."""
        return self._healkit.trials(trials)

    def passes(
        self, codes: Sequence[str], name: str, examples: Iterable[Example], timeout_s: float = TRIAL_TIMEOUT_S
    ) -> list[list[bool]]:
        """Return for each code which of the examples it meets."""
        chosen = list(examples)
        return [
            [met(example, result) for example, result in zip(chosen, results, strict=True)]
            for results in self.results(codes, name, chosen, timeout_s)
        ]

    def passes_in_world(
        self, codes: Sequence[str], program: Program, unseen: Sequence[Example]
    ) -> list[list[bool]]:
        """Return for each code which examples it meets in the world, and last whether its effects are the right ones.

        What follows a visible example that is not met counts as not met.
        """
        examples = [*program.examples, *unseen]
        right = [self.live(reference(program.name, "calls"), program, example)[1] for example in examples]
        found = []
        for code in codes:
            marks: list[bool] = []
            same = True
            for example, effects in zip(examples, right, strict=True):
                done, did = self.live(code, program, example)
                marks.append(done is not None and met(example, done))
                same = same and did == effects
                if not marks[-1] and len(marks) <= len(program.examples):
                    break
            found.append([*marks, *[False] * (len(examples) - len(marks)), same])
        return found

    def live(self, code: str, program: Program, example: Example) -> tuple[Execution | None, list[Any]]:
        """Run code in a new world; return how it ended, None if it cannot be run, and its effects."""
        vault = self._live.vault
        self._world.reset()
        try:
            if program.name in {entry.tool_name for entry in vault.list()}:
                vault.patch(program.name, code)
            else:
                vault.add(program.name, code, grants=program.grants)
            arguments = values.remade(example["arguments"])
            execution = self._live.execute(program.name, arguments=arguments, timeout=TRIAL_TIMEOUT_S)
        except HealkitError:
            return None, []
        return execution, list(self._world.effects)

    def correct(self, codes: Sequence[str], program: Program, unseen: Iterable[Example]) -> list[bool]:
        """Return whether each code meets the visible examples and those that the healer never saw."""
        unique = list(dict.fromkeys(codes))
        passed = self.passes(unique, program.name, [*program.examples, *unseen])
        verdicts = dict(zip(unique, map(all, passed), strict=True))
        return [verdicts[code] for code in codes]


def met(example: Example, result: TrialResult | Execution) -> bool:
    """Return whether the result is what the example asks for; `within` is how far a number may be off."""
    if not result.ok:
        return False
    if "within" in example and isinstance(result.value, int | float):
        return abs(result.value - example["result"]) <= example["within"]
    return values.meets(example["result"], result.value)


def trial(code: str, name: str, example: Example, timeout_s: float = TRIAL_TIMEOUT_S) -> Trial:
    """Return an example as a trial of some code."""
    if "call" in example:
        return Trial(f"{code}\n\n{_as_script(example['call'])}\n", {}, _SCRIPT, timeout_s)
    exact = values.has_tags(example)
    return Trial(code, values.remade(example["arguments"]), name, timeout_s, exact=exact)


def _as_script(call: str) -> str:
    """Return statements and a last expression as a script, whose `result` is that expression's value."""
    tree = ast.parse(call)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr), call
    tree.body[-1] = ast.Assign(targets=[ast.Name("result", ast.Store())], value=last.value)
    return ast.unparse(ast.fix_missing_locations(tree))

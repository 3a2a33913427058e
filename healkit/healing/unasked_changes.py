"""Changes of results that no check asks for.

Where no example says what a failing input should give, the results that the tool does return are the best evidence. A
patch that changes one of them may be right, but nothing speaks for it, so it comes after those that keep them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from healkit import values
from healkit.contracts.healing import Attempt, Check, CheckResult, difference
from healkit.contracts.vault import VaultEntry
from healkit.healing.advisor import Workbench
from healkit.healing.inputs import accepted, known_inputs, variants
from healkit.healing.result_types import returned_types, type_name
from healkit.healing.verdicts import doubted

#: How many other inputs are tried, and the time limit of each in seconds.
_INPUTS, _LIMIT_S = 32, 0.1


def doubt_unasked(
    entry: VaultEntry,
    checks: Sequence[Check],
    base: Sequence[CheckResult],
    attempts: Sequence[Attempt],
    bench: Workbench,
) -> list[Attempt]:
    """Return the attempts, with a doubt on those that change other results, or break the annotation, unasked.

    base: the checks' results without a patch. Where a check says what is right for a failing input, nothing is unasked.
    Raises `BudgetSpent`.
    """
    asked = any(check.binding and was.outcome != "passed" for check, was in zip(checks, base, strict=True))
    plausible = [attempt for attempt in attempts if attempt.verdict != "not_cured"]
    if asked or not plausible:
        return list(attempts)
    fitting = returned_types(entry.code, entry.tool_name)
    found = dict(_changed_inputs(entry, checks, plausible, bench))
    return [_doubted(attempt, entry, found.get(attempt.number), fitting) for attempt in attempts]


def _doubted(
    attempt: Attempt, entry: VaultEntry, changed: dict[str, Any] | None, fitting: frozenset[str]
) -> Attempt:
    if attempt.verdict == "not_cured":
        return attempt
    names = {type_name(result).partition("[")[0] for result in attempt.results if not result.failure}
    unfit = bool(fitting) and not names <= fitting
    if changed is None:
        return msgspec.structs.replace(attempt, unasked=unfit)
    call = values.call_text(entry.tool_name, changed)
    doubt = f"It changes what {call} returns, and no example says what is right there."
    return msgspec.structs.replace(attempt, patch=doubted(attempt.patch, doubt), unasked=True)


def _changed_inputs(
    entry: VaultEntry, checks: Sequence[Check], plausible: Sequence[Attempt], bench: Workbench
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each attempt that changes another result, and an input with such a result."""
    made = variants(known_inputs(entry, checks), lambda arguments: accepted(entry, arguments), _INPUTS)
    probes = [Check(origin="passing", arguments=arguments) for arguments in made]
    own = dict(bench.score(entry.code, [()], probes, every=True, limit_s=_LIMIT_S)).get(0, "")
    probes = [probe for probe, letter in zip(probes, own, strict=False) if letter == "."]
    if not probes:
        return
    edits = [[difference(entry.code, attempt.patch.code)] for attempt in plausible]
    scores = bench.score(entry.code, edits, probes, every=True, as_code=True, limit_s=_LIMIT_S)
    for place, letters in scores:
        changed = (probe for probe, letter in zip(probes, letters, strict=False) if letter in "we")
        if (first := next(changed, None)) is not None:
            yield plausible[place].number, first.arguments

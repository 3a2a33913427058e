"""Choosers: who decides what is done next.

Each gets the same closed metadata, a `Turn`, and answers with a choice: a dict such as
`{"type": "execute_data_op", "tool": "by_region", "params": {"df": "sales"}, "viewName": "totals"}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from healkit.contracts.decisions import EntityQuestion, Turn

_EXAMPLE = 'Such as: {"type": "finalize", "finalViewName": "sales"}'


class Chooser(Protocol):
    """Decides on the next step.

    One whose attribute `told_in_full` is true is told counts as they are; any other is told those of results rounded,
    as it may send them away.

    One that waits for a person may have `prepare(stop)` too: it is called once, before the run begins, with the event
    that ends the decision, and raises a `HealkitError` where nothing can be chosen.
    """

    #: Name in the record of the decision.
    name: str

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Return the next choice, or None to end without a result; called by the loop once a turn.

        A choice that cannot be taken is asked for once more, with the reason in `turn.problem`. A `HealkitError` that
        is raised here halts the decision.
        """
        ...


def told(turn: Turn) -> str:
    """Return a turn as text: exactly what a model or a person is told."""
    return msgspec.json.format(msgspec.json.encode(turn), indent=1).decode()


def ask_person(
    question: EntityQuestion, read: Callable[[str], str] = input, show: Callable[[str], object] = print
) -> Any:
    """Ask the data's owner which value is meant, by its number or its text; return None where none was named."""
    of_column = "" if question.column is None else f" in {question.column}"
    show(f"{question.entity!r} may mean one of several values{of_column}:")
    for number, candidate in enumerate(question.candidates, 1):
        show(f"  {number}  {candidate}")
    try:
        said = read("Which is meant (empty: none)? ").strip()
    except EOFError:
        return None
    numbered = {str(number): candidate for number, candidate in enumerate(question.candidates, 1)}
    by_text = {str(candidate): candidate for candidate in question.candidates}
    return by_text.get(said, numbered.get(said))


class Plan:
    """Steps that are known beforehand, taken in order; the plan ends with the first that fails.

    steps: choices, each data operation with an `intended` state where one is expected. taken: how many of them an
    earlier run of the decision has taken.
    """

    name = "plan"
    told_in_full = True

    def __init__(self, steps: Iterable[Mapping[str, Any]], taken: int = 0) -> None:
        self.steps = list(steps)
        self._next = taken

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Return the next step; None after one that failed or could not be taken, and at the end."""
        failed = bool(turn.steps) and not turn.steps[-1].success
        if turn.problem is not None or failed or self._next >= len(self.steps):
            return None
        self._next += 1
        return self.steps[self._next - 1]


class Person:
    """Person at a terminal, who is shown what a model would be told.

    read: returns a line that was typed in answer to a prompt, or raises EOFError. show: prints a text.
    """

    name = "person"
    told_in_full = True

    def __init__(self, read: Callable[[str], str] = input, show: Callable[[str], object] = print) -> None:
        self._read, self._show = read, show

    def choose(self, turn: Turn) -> Mapping[str, Any] | None:
        """Show the turn, and return the choice that was typed as JSON; None for an empty line."""
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

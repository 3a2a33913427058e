"""`%decide` and `%%decide`: decisions on frames of a notebook."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healkit.decisions.choosers import Person, ask_person
from healkit.errors import UsageInvalid
from healkit.notebook.heal_magic import said
from healkit.notebook.magic_words import evaluate
from healkit.parsing import chooser_of, read_aliases, read_steps, split_commas

if TYPE_CHECKING:
    from healkit.app import Healkit


def plan_in(cell: str, namespace: Mapping[str, Any]) -> list[Any]:
    """Return the plan that a cell's body is, as Python or JSON; raise `UsageInvalid` for anything else."""
    if not cell.strip():
        raise UsageInvalid("The cell holds no plan.", hint="Write a list of choices below %%decide.")
    steps = evaluate(cell.strip(), namespace)
    if not isinstance(steps, list | tuple):
        raise UsageInvalid(f"A plan is a list of choices, not a {type(steps).__name__}.")
    return list(steps)


def decide(
    healkit: Healkit,
    options: Namespace,
    data: dict[str, Any],
    plan: list[Any] | None,
    *,
    has_page: bool = False,
) -> Any:
    """Decide, and ask in the cell where a person is needed; return the decision, or its panel where one is wanted.

    Without a plan and a chooser, in a notebook, the panel opens in which a person chooses. A person who chooses is not
    asked which value is meant: the candidates are cells.
    """
    if options.question is None and options.resume is None:
        raise UsageInvalid(
            "A decision needs a question.", hint='Write it in quotes: %decide "Which?" sales=frame'
        )
    if not data and options.resume is None:
        raise UsageInvalid(
            "A decision needs data.", hint='Name a frame after the question: %decide "Which?" sales=frame'
        )
    if options.plan is not None:
        if plan is not None:
            raise UsageInvalid("There are two plans: --plan and the cell's body.", hint="Leave one out.")
        plan = read_steps(_text_of(options.plan), options.plan)
    has_own = plan is None and options.chooser is None and options.resume is not None
    if plan is None and options.chooser is None and has_page and not has_own:
        options.chooser, options.panel = "person", True
    chooser: Any = None if has_own else chooser_of(plan, options.chooser)
    given: dict[str, Any] = {
        "tools": None if options.tools is None else split_commas(options.tools),
        "persona": options.persona,
        "share": options.share or (),
        "aliases": read_aliases(options.alias),
        "heal": options.heal,
        "analyst": "model" if options.analysis else None,
        "timeout": options.timeout,
    }
    by_person = chooser == "person"
    if by_person and options.panel and options.resume is None:
        return healkit.decide_panel(options.question, data, **given)
    decision = healkit.decide(
        options.question,
        data or None,
        resume=options.resume,
        chooser=Person(said) if by_person else chooser,
        ask=None if by_person else lambda question: ask_person(question, said),
        **given,
    )
    return healkit.audit_panel(decision) if options.panel else decision


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageInvalid(f"Cannot read {file!r}: {reason}.") from None

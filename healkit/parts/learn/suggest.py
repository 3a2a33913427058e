"""`hk.suggest`: which tool to call, and why.

Without an intent, earlier calls or traces, there is still an answer: the most used tools, matching descriptions, or a
sentence. A tool that is suggested for an intent and then run teaches the words of that intent, see `ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import select

from healkit.core.contracts.execution import utc_now
from healkit.core.store.models import CHANGES, TOOLS
from healkit.errors import UsageInvalid, check_text, did_you_mean
from healkit.parts.learn.answers import Answers, sentence_of
from healkit.parts.learn.facts import node_of
from healkit.parts.learn.graph import GraphLearner, documents_of, stored_state
from healkit.parts.learn.ranking import SIGNALS, Context, Ranker, habit_of, stems_of
from healkit.parts.learn.tables import TOOL_NODES
from healkit.parts.learn.tool_graph import wilson_least

if TYPE_CHECKING:
    from healkit.core.store.database import Database
    from healkit.core.store.vault import Vault

NOTHING = "There is nothing to suggest: the vault has no tools, and no tool was called."
_K_MAX = 100
#: Longest intent that is read.
_INTENT_MAX_CHARS = 2_000
_WORDS_TOLD = 3
#: How long a suggestion waits for the batch that is being learned, in seconds.
_BUSY_S = 0.05
#: Share of calls that fail at least, from which that is said of a tool.
_MOSTLY = 0.5
DEFAULT_PERSONA = "default"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Tool to call; `share` is how likely it is among all tools, 0 to 1, and `why` a sentence."""

    tool: str
    share: float
    why: str


class Suggestions(Answers[Suggestion]):
    """Suggestions, the likeliest first; shows a sentence if there are none, or if traces are waiting."""

    def __repr__(self) -> str:
        width = max((len(suggestion.tool) for suggestion in self), default=0)
        lines = [
            f"{suggestion.tool:<{width}}  {suggestion.share:4.0%}  {suggestion.why}" for suggestion in self
        ]
        return "\n".join([*(lines or [NOTHING]), *([sentence_of(self.waiting)] if self.waiting else [])])


class Suggester:
    """Suggestions from a learner's counts, among the tools of the vault and the called ones.

    soon: Learns from the newest traces if that is quick, and returns how many are waiting.
    intents: Persona → the last intent, and its time; the trace of the next execution has it (`Tracer.intents`).
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        learner: GraphLearner,
        soon: Callable[[], int],
        intents: dict[str, tuple[str, datetime]],
    ) -> None:
        self._database, self._vault, self._learner = database, vault, learner
        self._soon, self._intents = soon, intents
        self._stamp: object = None
        #: Tool of the vault → its personas.
        self._personas: dict[str, set[str]] = {}
        self._gone: set[str] = set()

    def suggest(
        self,
        intent: str | None = None,
        *,
        after: str | Sequence[str] = (),
        k: int = 5,
        persona: str | None = None,
    ) -> Suggestions:
        """Suggest up to k tools, the likeliest first, each with its `share`, from 0 to 1, and the reason.

        intent: What you want to do, in words.
        after: The tools that were called before, the last one last.
        persona: The persona whose habits count; only vault tools that it can run are suggested.

        Raises `UsageInvalid` for an unknown tool.

        Example:
        >>> code = "def hours_of_sunshine(month: int): return 8"
        >>> _ = hk.vault.add("hours_of_sunshine", code, description="Hours of sunshine in a month")
        >>> suggested = hk.suggest("hours of sunshine in July", k=20)
        >>> "hours_of_sunshine" in [one.tool for one in suggested]
        True
        """
        if not 1 <= k <= _K_MAX:
            raise UsageInvalid(f"k must be from 1 to {_K_MAX}, got {k}.")
        if intent is not None:
            check_text("intent", intent)
            intent = intent[:_INTENT_MAX_CHARS]
        names = [node_of(tool) for tool in ([after] if isinstance(after, str) else after)]
        waiting = self._soon()
        with self._ranker() as ranker:
            for name in names:
                if name not in ranker.tools:
                    raise UsageInvalid(
                        f"No tool named {name!r} was called.{did_you_mean(name, ranker.tools)}"
                    )
            ranked = self._ranked(ranker, names, stems_of(intent or ""), k, persona)
        suggestions = Suggestions(ranked, waiting)
        if intent and suggestions:
            self._intents[persona or DEFAULT_PERSONA] = (intent, utc_now())
        return suggestions

    @contextmanager
    def _ranker(self) -> Iterator[Ranker]:
        """Lend the learner's stored ranker, with the current texts of the vault; while it learns, another one."""
        lent = self._learner.lock.acquire(timeout=_BUSY_S)
        try:
            yield self._stored_ranker(self._learner if lent else GraphLearner())
        finally:
            if lent:
                self._learner.lock.release()

    def _stored_ranker(self, learner: GraphLearner) -> Ranker:
        stamp = self._vault.stamp()
        with self._database.read() as session:
            stored = stored_state(session).get("ranker", {}).get("learned", 0)
            if stored != learner.ranker.learned:
                learner.load(session)
                self._stamp = None
            if stamp != self._stamp:
                learner.ranker.describe(documents_of(session))
                rows = session.execute(
                    select(TOOLS.c.tool_name, TOOLS.c.target_persona, TOOLS.c.removed_at)
                ).all()
                self._personas = {}
                for tool, persona, removed_at in rows:
                    if removed_at is None:
                        self._personas.setdefault(tool, set()).add(persona)
                former = session.scalars(select(CHANGES.c.old_name).where(CHANGES.c.kind == "renamed"))
                self._gone = {*former, *(tool for tool, _, removed_at in rows if removed_at)} - set(
                    self._personas
                )
                self._stamp = stamp if learner is self._learner else None
        return learner.ranker

    def _ranked(
        self, ranker: Ranker, after: Sequence[str], words: Sequence[str], k: int, persona: str | None
    ) -> Suggestions:
        tools = ranker.tools
        context: Context = ("", "") if not after else (after[-2] if len(after) > 1 else "", after[-1])
        places = [
            place
            for place, tool in enumerate(tools)
            if tool not in self._gone
            and (persona is None or self._personas.get(tool, set()) & {persona, DEFAULT_PERSONA})
        ]
        if not places:
            return Suggestions()
        words = tuple(dict.fromkeys(words))
        habit = habit_of(persona or DEFAULT_PERSONA, context[1])
        signals = ranker.signals(context, words, habit)[places]
        parts = signals * ranker.weights[int(bool(words))]
        scores = parts.sum(axis=1)
        odds = np.exp(scores - scores.max())
        odds /= odds.sum()
        over = parts - parts.mean(axis=0)
        best = [(int(at), tools[places[at]]) for at in np.argsort(-scores, kind="stable")[:k]]
        with self._database.read() as session:
            statement = select(TOOL_NODES).where(TOOL_NODES.c.name.in_([tool for _, tool in best]))
            calls = {row[0]: (row[1], row[2]) for row in session.execute(statement)}
        return Suggestions(
            Suggestion(tool, float(odds[at]), _why(
                ranker, tool, dict(zip(SIGNALS, over[at], strict=True)), context, words, habit, calls.get(tool, (0, 0))
            ))
            for at, tool in best
        )  # fmt: skip


def _why(
    ranker: Ranker, tool: str, over: Mapping[str, float], context: Context, words: Sequence[str], habit: Context,
    calls: tuple[int, int],
) -> str:  # fmt: skip
    """Give the strongest reason for a tool, and how its calls ended.

    over: Signal → how far it is above other tools'.
    """
    count, successes = calls
    if not count:
        ended = ""
    elif wilson_least(count - successes, count) > _MOSTLY:
        ended = f"; but {count - successes:,} of its {count:,} calls failed"
    else:
        ended = f"; {successes:,} of its {count:,} calls succeeded"
    for signal in sorted(over, key=lambda name: -over[name]):
        reason = _told(ranker, tool, signal, context, words, habit) if over[signal] > 0 else ""
        if reason:
            return f"{reason}{ended}."
    if not count:
        return "It is in the vault, but was not called yet."
    return f"It was called {_times(count)}{'' if successes else ', and always failed'}."


def _told(
    ranker: Ranker, tool: str, signal: str, context: Context, words: Sequence[str], habit: Context
) -> str:
    """Give a signal in numbers; empty if it has none."""
    if signal == "description":
        matching_words = [word for word in words if ranker.describes(tool, word)]
        return f"Its description fits {_listed(matching_words)}" if matching_words else ""
    if signal == "intents":
        matching_words = [word for word in words if word in ranker.by_word and ranker.by_word[word][tool]]
        matching_words.sort(key=lambda word: -ranker.by_word[word][tool])
        many = ranker.by_word[matching_words[0]][tool] if matching_words else 0
        return (
            f"It was used {_times(many)} for an intent with {_listed(matching_words)}"
            if matching_words
            else ""
        )
    counts: Mapping[str, int] = {}
    where = context[1]
    if signal == "after_two" and context[0]:
        counts, where = ranker.after_two.get(context, {}), f"{context[0]} and {where}"
    elif signal in ("after_one", "after_two") and where:
        counts = ranker.after_one(where)
    elif signal == "habit" and where:
        counts, where = ranker.counts(habit), f"{where} for this persona"
    count = counts.get(tool, 0)
    return f"It came after {where} in {count:,} of {sum(counts.values()):,} cases" if count else ""


def _times(many: int) -> str:
    return "once" if many == 1 else f"{many:,} times"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words[:_WORDS_TOLD])

"""Ranking of tools: what comes next, and what an intent means.

There are five signals, each the logarithm of a probability or close to one. Three are Kneser-Ney: over the last call,
over the last two, and over the last call of that persona. The others are BM25 over names, descriptions and schemas, and
a naive Bayes over the words of earlier intents. A softmax regression weighs them. It predicts each call before it
learns from it (prequential), and has separate weights for calls with an intent and without.

docs/learning_numbers.md lists what was tried without success on public logs: attention over co-occurrence, popularity,
repetition.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

#: What the columns of `Ranker.signals` are.
SIGNALS = ("after_one", "after_two", "description", "intents", "habit")
#: Before anything is learned: without an intent, and with one.
_FIRST_WEIGHTS = ((0.2, 0.35, 0.0, 0.0, 0.35), (0.2, 0.35, 0.3, 0.7, 0.35))
_RATE = 0.1
#: From this call on the regression learns from one call in so many; the counts learn from all.
_ALL_UNTIL, _THEN_EVERY = 1_000, 64
#: Kneser-Ney's discount, and BM25's usual constants.
_DISCOUNT, _K1, _B = 0.75, 1.2, 0.75
#: Intents that the smoothing of a word's share is worth.
_SMOOTHING = 1.0
_WORDS_MAX = 100
_WORD = re.compile(r"[^\W\d_]{2,30}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON = frozenset(
    "an and are as at be by can could do for from get give has have how if in into is it its like me my need of on "  # noqa: SIM905 - a list of words
    "or our please so some tell that the their them then there this to up use using want was we what when where "
    "which will with would you your".split()
)  # fmt: skip

Array = np.ndarray[Any, Any]
#: What a call comes after: the one before the last, the last; empty at the beginning.
Context = tuple[str, str]
START: Context = ("", "")
#: What is in the place of the call before the last in a context of a persona's habits; no tool is called so.
_HABIT = "habit of {}"


def habit_of(persona: str, last: str) -> Context:
    """Return the context for the calls of a persona after one call."""
    return _HABIT.format(persona), last


def stems_of(text: str) -> list[str]:
    """Return the words of a text or a name in lower case, without common ones and endings of number and tense."""
    stems = (_stem(word.lower()) for word in _WORD.findall(_HUMP.sub(" ", text)))
    return [word for word in stems if word not in _COMMON]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending) and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


class Ranker:
    """Counts of calls and words, and the weights of the signals; in memory only, see `learning.graph`."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        #: Context → tool → count, for both calls before it, for one, and for none.
        self.after_two: dict[Context, Counter[str]] = defaultdict(Counter)
        self._after_one: dict[str, Counter[str]] = defaultdict(Counter)
        #: The same with the number of different contexts in place of the count: Kneser-Ney's lower orders.
        self._ways_one: dict[str, Counter[str]] = defaultdict(Counter)
        self._ways: list[int] = []
        #: The same for the calls of one persona after one call; they count no other way.
        self._habits: dict[Context, Counter[str]] = defaultdict(Counter)
        #: Word → tool → intents with that word.
        self.by_word: dict[str, Counter[str]] = defaultdict(Counter)
        self.intents: Counter[str] = Counter()
        self._documents: dict[str, list[tuple[int, float]]] = {}
        self.weights = np.array(_FIRST_WEIGHTS)
        self.squares = np.full_like(self.weights, 1.0)
        self.learned = 0

    @property
    def tools(self) -> list[str]:
        """Tools that can be suggested, in the order of the rows of `signals`."""
        return list(self._place)

    def describe(self, documents: Mapping[str, str]) -> None:
        """Take the existing tools, with the text of each, in place of the earlier ones."""
        for tool in documents:
            self._add(tool)
        words = {tool: Counter(stems_of(text)) for tool, text in documents.items()}
        mean = sum(counts.total() for counts in words.values()) / len(words) if words else 0.0
        self._documents = {}
        for tool, counts in words.items():
            norm = _K1 * (1 - _B + _B * counts.total() / (mean or 1.0))
            for word, count in counts.items():
                share = count * (_K1 + 1) / (count + norm)
                self._documents.setdefault(word, []).append((self._place[tool], share))
        for entries in self._documents.values():
            rarity = math.log(1 + (len(words) - len(entries) + 0.5) / (len(entries) + 0.5))
            entries[:] = [(place, share * rarity) for place, share in entries]

    def _add(self, tool: str) -> None:
        if tool not in self._place:
            self._place[tool] = len(self._place)
            self._ways.append(0)

    def count(self, context: Context, tool: str, times: int = 1) -> None:
        """Count a call after a context, or a persona's habit."""
        self._add(tool)
        last = context[1]
        if context[0].startswith(_HABIT.format("")):
            self._habits[context][tool] += times
            return
        if not self.after_two[context][tool]:
            self._ways_one[last][tool] += 1
        self.after_two[context][tool] += times
        if not self._after_one[last][tool]:
            self._ways[self._place[tool]] += 1
        self._after_one[last][tool] += times

    def count_words(self, words: Iterable[str], tool: str) -> None:
        """Count an intent that this tool was used for."""
        self.intents[tool] += 1
        for word in words:
            self.by_word[word][tool] += 1

    def counts(self, context: Context) -> Mapping[str, int]:
        """Return how often each tool came after a context, or is a persona's habit."""
        is_habit = context[0].startswith(_HABIT.format(""))
        return (self._habits if is_habit else self.after_two).get(context, Counter())

    def learn(
        self, context: Context, tool: str, words: Sequence[str] = (), habit: Context | None = None
    ) -> Sequence[str]:
        """Predict a call and learn from it: the weights first, then the counts.

        words: Words of its intent, if any; returns those that were counted.
        habit: Context of its persona's habits.
        """
        distinct_words = tuple(dict.fromkeys(words))[:_WORDS_MAX]
        self.learned += 1
        if tool in self._place and (self.learned <= _ALL_UNTIL or self.learned % _THEN_EVERY == 0):
            self._fit(self.signals(context, distinct_words, habit), self._place[tool], bool(distinct_words))
        self.count(context, tool)
        if habit is not None:
            self.count(habit, tool)
        if distinct_words:
            self.count_words(distinct_words, tool)
        return distinct_words

    def state(self) -> dict[str, Any]:
        """Return the state other than counts, as JSON data."""
        return {"learned": self.learned, "weights": self.weights.tolist(), "squares": self.squares.tolist()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over the result of `state`."""
        self.learned = state["learned"]
        self.weights, self.squares = map(np.array, (state["weights"], state["squares"]))

    def after_one(self, last: str) -> Mapping[str, int]:
        """Return how often each tool came after one."""
        return self._after_one.get(last, {})

    def describes(self, tool: str, word: str) -> bool:
        """Return whether a word is in a tool's text."""
        return any(place == self._place[tool] for place, _ in self._documents.get(word, ()))

    def _fit(self, signals: Array, right: int, with_intent: bool) -> None:
        """Take one step of the softmax regression, with AdaGrad's step sizes."""
        at = int(with_intent)
        scores = signals @ self.weights[at]
        odds = np.exp(scores - scores.max())
        slope = signals[right] - (odds / odds.sum()) @ signals
        self.squares[at] += slope * slope
        self.weights[at] += _RATE * slope / np.sqrt(self.squares[at])

    def scores(self, context: Context, words: Sequence[str] = (), habit: Context | None = None) -> Array:
        """Return a score for each of `tools`."""
        distinct_words = tuple(dict.fromkeys(words))[:_WORDS_MAX]
        tool_scores: Array = (
            self.signals(context, distinct_words, habit) @ self.weights[int(bool(distinct_words))]
        )
        return tool_scores

    def signals(self, context: Context, words: Sequence[str] = (), habit: Context | None = None) -> Array:
        """Return a row of `SIGNALS` for each of `tools`; without a habit, the signal covers all personas."""
        many = len(self._place)
        base = np.array(self._ways) + 0.5
        base /= base.sum()
        first_order = self._smoothed(self._after_one.get(context[1]), base)
        lower = self._smoothed(self._ways_one.get(context[1]), base)
        two = self._smoothed(self.after_two.get(context), lower)
        habitual = self._smoothed(self._habits.get(habit) if habit else None, two)
        description_scores, intent_scores = np.zeros(many), np.zeros(many)
        if words:
            for word in words:
                for place, weight in self._documents.get(word, ()):
                    description_scores[place] += weight
            intent_scores = self._meant(words)
        return np.column_stack(
            [np.log(first_order), np.log(two), description_scores, intent_scores, np.log(habitual)]
        )

    def _smoothed(self, counts: Counter[str] | None, lower: Array) -> Array:
        """Return Kneser-Ney's probabilities: discounted counts, and the rest divided as the lower order says."""
        if not counts:
            return lower
        total, kinds = counts.total(), len(counts)
        probabilities = lower * (_DISCOUNT * kinds / total)
        for tool, count in counts.items():
            probabilities[self._place[tool]] += (count - _DISCOUNT) / total
        return probabilities

    def _meant(self, words: Sequence[str]) -> Array:
        """Return how much more often each word was in intents of a tool than in all, as the sum of the logarithms."""
        everything = self.intents.total()
        intent_counts = np.array([self.intents[tool] for tool in self._place], dtype=float)
        scores = np.zeros(len(self._place))
        smooth = np.log(_SMOOTHING / (intent_counts + _SMOOTHING))
        for word in words:
            tools = self.by_word.get(word)
            if tools:
                share = tools.total() / everything
                scores += smooth
                for tool, count in tools.items():
                    scores[self._place[tool]] += math.log(1 + count / share / _SMOOTHING)
        scores /= len(words) ** 0.5
        return scores

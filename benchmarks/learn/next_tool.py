"""Next tool, on public logs.

    python benchmarks/learn/next_tool.py --gorilla DIR --tau DIR

Each conversation is left out once, with all that are tries of the same task; the rest teaches. Every call after the
first is predicted, among all tools, from the calls before it; with intents, also from what the user had said last. Of
equal scores the middle place counts.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from logs import Call, Conversation, Log, bfcl_multi_turn, tau_bench

from healkit.learning.ranking import START, Ranker, words_of

#: Tool → score, for what comes after these calls.
Scores = Mapping[str, float]
Model = Callable[[Sequence[Call], str], Scores]
SEED = 7


def popularity(_: Log, taught: Sequence[Conversation]) -> Model:
    counts = Counter(call.tool for one in taught for call in one.calls)
    return lambda *_: counts


def co_occurrence(_: Log, taught: Sequence[Conversation]) -> Model:
    together: dict[str, Counter[str]] = defaultdict(Counter)
    for one in taught:
        tools = {call.tool for call in one.calls}
        for tool in tools:
            together[tool].update(tools - {tool})

    def model(before: Sequence[Call], _: str) -> Scores:
        found: Counter[str] = Counter()
        for call in before:
            found.update(together[call.tool])
        return found

    return model


def markov_1(log: Log, taught: Sequence[Conversation]) -> Model:
    """Order by what followed the last call, and by popularity where nothing or equally much did."""
    popular = popularity(log, taught)([], "")
    follow: dict[str, Counter[str]] = defaultdict(Counter)
    for one in taught:
        for first, second in zip(one.calls, one.calls[1:], strict=False):
            follow[first.tool][second.tool] += 1
    return lambda before, _: {t: follow[before[-1].tool][t] + n / 1e6 for t, n in popular.items()}


def ranker(log: Log, taught: Sequence[Conversation], *, with_intent: bool) -> Model:
    made = Ranker()
    made.describe(log.documents)
    for one in taught:
        context = START
        for call in one.calls:
            made.learn(context, call.tool, words_of(call.intent) if with_intent else ())
            context = (context[1], call.tool)

    def model(before: Sequence[Call], intent: str) -> Scores:
        context = (before[-2].tool if len(before) > 1 else "", before[-1].tool)
        scores = made.scores(context, words_of(intent) if with_intent else ())
        return dict(zip(made.tools, scores, strict=True))

    return model


def rank(scores: Scores, right: str) -> float:
    if right not in scores:
        return float("inf")
    best = sum(score > scores[right] for score in scores.values())
    return 1 + best + (sum(score == scores[right] for score in scores.values()) - 1) / 2


def mean_reciprocal_rank(log: Log, make: Callable[..., Model], **options: bool) -> float:
    order = np.random.default_rng(SEED).permutation(len(log.conversations))
    shuffled = [log.conversations[at] for at in order]
    found = []
    for group in {one.group for one in shuffled}:
        model = make(log, [one for one in shuffled if one.group != group], **options)
        for one in shuffled:
            if one.group == group:
                for at in range(1, len(one.calls)):
                    call = one.calls[at]
                    found.append(1 / rank(model(one.calls[:at], call.intent), call.tool))
    return float(np.mean(found))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gorilla", type=Path, help="a checkout of ShishirPatil/gorilla")
    parser.add_argument("--tau", type=Path, help="a checkout of sierra-research/tau-bench")
    given = parser.parse_args(argv)
    logs = [bfcl_multi_turn(given.gorilla)] if given.gorilla else []
    logs += [tau_bench(given.tau, domain) for domain in ("airline", "retail")] if given.tau else []
    if not logs:
        parser.error("name at least one checkout")
    print(f"{'MRR of the next tool':<36} popular  co-occur  Markov-1  healkit  + intent  bound")
    ok = True
    for log in logs:
        bound = 0.72 if log.name.startswith("BFCL") else 0.70
        simple = [mean_reciprocal_rank(log, make) for make in (popularity, co_occurrence, markov_1)]
        ours = [mean_reciprocal_rank(log, ranker, with_intent=known) for known in (False, True)]
        ok &= ours[1] >= bound
        told = "  ".join(f"{value:>7.3f}" for value in [*simple, *ours])
        print(f"{log.name:<36} {told}  {bound:>6.2f} {'held' if ours[1] >= bound else 'MISSED'}", flush=True)
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())

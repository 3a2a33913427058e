"""Next tool, on public logs.

    python benchmarks/learn/next_tool.py --gorilla DIR --tau DIR

Each conversation is left out once, with all that are tries of the same task; the rest teaches. Every call after the
first is predicted, among all tools, from the calls before it; with intents, also from what the user had said last. Of
equal scores the middle place counts. Then personas: conversations in order, each predicted before it is learned, with
the habit of its persona and without; simulated ones, whose habits differ at a share of the tools, and those of
tau-bench, each under a persona by chance.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from logs import Call, Conversation, Log, bfcl_multi_turn, tau_bench

from healkit.parts.learn.ranking import START, Ranker, habit_of, stems_of

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
            made.learn(context, call.tool, stems_of(call.intent) if with_intent else ())
            context = (context[1], call.tool)

    def model(before: Sequence[Call], intent: str) -> Scores:
        context = (before[-2].tool if len(before) > 1 else "", before[-1].tool)
        scores = made.scores(context, stems_of(intent) if with_intent else ())
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


def personas_in_order(
    documents: Mapping[str, str], stream: Sequence[tuple[str, list[str]]], *, known: bool
) -> float:
    """Return the MRR over the last two thirds.

    stream: persona and tools of each conversation. known: with the persona.
    """
    made, found = Ranker(), []
    made.describe(documents)
    for number, (persona, tools) in enumerate(stream):
        context = START
        for tool in tools:
            habit = habit_of(persona, context[1]) if known else None
            if context != START and 3 * number >= len(stream):
                scores = dict(zip(made.tools, made.scores(context, (), habit), strict=True))
                found.append(1 / rank(scores, tool))
            made.learn(context, tool, (), habit)
            context = (context[1], tool)
    return float(np.mean(found))


def simulated(seed: int, personas: int, differ: float, runs: int) -> list[tuple[str, list[str]]]:
    """Make conversations of eight calls; at the share `differ` of 20 tools each persona has a next tool of its own."""
    source = random.Random(seed)
    tools = [f"tool_{number}" for number in range(20)]

    def habits() -> dict[str, list[str]]:
        return {last: source.sample(tools, 4) for last in ["", *tools]}

    shared, own = habits(), [habits() for _ in range(personas)]
    after = [{last: (mine if source.random() < differ else shared)[last] for last in shared} for mine in own]
    stream = []
    for _ in range(runs):
        persona, last, calls = source.randrange(personas), "", []
        for _ in range(8):
            last = source.choices(after[persona][last], (0.6, 0.2, 0.15, 0.05))[0]
            calls.append(last)
        stream.append((str(persona), calls))
    return stream


def by_chance(log: Log, seed: int, personas: int) -> list[tuple[str, list[str]]]:
    source = random.Random(seed)
    stream = [
        (str(source.randrange(personas)), [call.tool for call in one.calls]) for one in log.conversations
    ]
    source.shuffle(stream)
    return stream


def print_personas(logs: Sequence[Log]) -> None:
    print(f"\n{'MRR in order':<58} without  with persona")
    tools = {f"tool_{number}": f"tool_{number}" for number in range(20)}
    rows = [
        (f"simulated, {personas} personas, differ {differ}, {runs} runs", tools,
         [simulated(seed, personas, differ, runs) for seed in range(4)])
        for differ in (0, 0.3, 1) for personas in (2, 5) for runs in (60, 400)
    ]  # fmt: skip
    rows += [
        (f"{log.name}, {many} personas by chance", log.documents, [by_chance(log, seed, many) for seed in range(3)])
        for log in logs for many in (1, 2, 4)
    ]  # fmt: skip
    for name, documents, streams in rows:
        found = [
            np.mean([personas_in_order(documents, stream, known=known) for stream in streams])
            for known in (False, True)
        ]
        print(f"{name:<58} {found[0]:>7.3f} {found[1]:>13.3f}", flush=True)


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
    print_personas([log for log in logs if log.name.startswith("tau")])
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())

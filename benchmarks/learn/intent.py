"""Tool for an intent, on BFCL's live questions.

    python benchmarks/learn/intent.py --gorilla DIR

The tools of all questions are one catalogue. *Left out*: a tenth of the questions at a time, the other nine tenths were
asked before. *In order*: each question is answered before it is learned from, in a random order, from the first on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from logs import Question, bfcl_live

from healkit.parts.learn.ranking import SIGNALS, START, Ranker, stems_of

SEED, FOLDS, BOUND = 7, 10, 0.05
BM25 = SIGNALS.index("description")


def hits(made: Ranker, one: Question) -> list[bool]:
    """Tell if a right tool is first, and among the first five: for BM25, and for the ranker."""
    words, tools = stems_of(one.intent), made.tools
    found = []
    for scores in (made.signals(START, tuple(dict.fromkeys(words)))[:, BM25], made.scores(START, words)):
        best = [tools[at] in one.tools for at in np.argsort(-scores, kind="stable")[:5]]
        found += [best[0], any(best)]
    return found


def learn(made: Ranker, one: Question) -> None:
    for tool in sorted(one.tools):
        made.learn(START, tool, stems_of(one.intent))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gorilla", type=Path, required=True, help="a checkout of ShishirPatil/gorilla")
    documents, questions = bfcl_live(parser.parse_args(argv).gorilla)
    order = np.random.default_rng(SEED).permutation(len(questions))
    asked = [questions[at] for at in order]
    left_out = []
    for fold in range(FOLDS):
        made = Ranker()
        made.describe(documents)
        for at, one in enumerate(asked):
            if at % FOLDS != fold:
                learn(made, one)
        left_out += [hits(made, one) for one in asked[fold::FOLDS]]
    made = Ranker()
    made.describe(documents)
    in_order = []
    for one in asked:
        in_order.append(hits(made, one))
        learn(made, one)
    print(
        f"{len(questions):,} questions, {len(documents):,} tools    BM25 Hit@1  Hit@5   healkit Hit@1  Hit@5"
    )
    for name, found in (("left out", left_out), ("in order", in_order)):
        one, five, ours_one, ours_five = np.mean(found, axis=0)
        print(f"{name:<32}{one:>10.3f}{five:>7.3f}{ours_one:>16.3f}{ours_five:>7.3f}")
    one, five, ours_one, ours_five = np.mean(left_out, axis=0)
    held = ours_one >= one + BOUND and ours_five >= five + BOUND
    print(f"bound: {BOUND * 100:.0f} points above BM25, both: {'held' if held else 'MISSED'}")
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())

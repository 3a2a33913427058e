"""Blind Cliffwalk: updates to learn it, by order of replay.

Schaul, Quan, Antonoglou and Silver, "Prioritized Experience Replay", ICLR 2016, figure 1: n states in a row, of two
actions one goes on and the other ends it, and only the last step of all right ones has a reward. The memory holds what
every sequence of actions gives, so the rewarded transition is one of 2^(n+1) - 2. Tabular Q-learning, a step of 1/4,
a discount of 1 - 1/n, until the mean squared error is below 0.001.

Priorities are as healkit's sampling has them: |TD error| from 0.01 to 1 in hundredths, 0.5 before the first, a level
drawn by its count times its priority^α, then a place in it; weights 1/(N·P)^β over the largest. The paper has no
weights here: they scale the step, and in a table of values take back what the order gives (the last column).
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence

from healkit.parts.learn.priority import LEAST_PRIORITY

STEP, LEARNED, LEVELS, COLD = 0.25, 1e-3, 100, 0.5

#: State, action (1 goes on), copy.
Transition = tuple[int, int, int]


class Walk:
    """Values of a walk's actions so far, and how far they are from the truth."""

    def __init__(self, n: int, dice: random.Random) -> None:
        self.n, self.discount = n, 1 - 1 / n
        self.right = [self.discount ** (n - 1 - state) for state in range(n)]
        self.values = [[dice.gauss(0, 0.1), dice.gauss(0, 0.1)] for _ in range(n)]
        self._error = sum(self._part(state, action) for state in range(n) for action in (0, 1))

    def _part(self, state: int, action: int) -> float:
        return (self.values[state][action] - (self.right[state] if action else 0.0)) ** 2

    @property
    def learned(self) -> bool:
        return self._error / (2 * self.n) < LEARNED

    def td_error(self, state: int, action: int) -> float:
        if not action:
            return -self.values[state][0]
        ahead = 1.0 if state == self.n - 1 else self.discount * max(self.values[state + 1])
        return ahead - self.values[state][1]

    def update(self, state: int, action: int, weight: float = 1.0) -> float:
        """Learn from a transition; return its TD error."""
        error = self.td_error(state, action)
        self._error -= self._part(state, action)
        self.values[state][action] += STEP * weight * error
        self._error += self._part(state, action)
        return error

    def gain(self, state: int, action: int) -> float:
        """Return how much an update would take off the error."""
        off = self.values[state][action] - (self.right[state] if action else 0.0)
        return off**2 - (off + STEP * self.td_error(state, action)) ** 2


def memory(n: int) -> Iterator[Transition]:
    """Yield all transitions: those from the first state are in every sequence, the last one's in one."""
    return (
        (state, action, copy)
        for state in range(n)
        for action in (0, 1)
        for copy in range(2 ** (n - 1 - state))
    )


class Levels:
    """Transitions by their priority in hundredths."""

    def __init__(self, held: Sequence[Transition], alpha: float) -> None:
        self._held: list[list[Transition]] = [[] for _ in range(LEVELS + 1)]
        self._held[round(LEVELS * COLD)] = list(held)
        self._power = [level**alpha for level in range(LEVELS + 1)]

    def draw(self, dice: random.Random, beta: float) -> tuple[int, int, float]:
        """Draw a level, a place in it, and the weight of what is there."""
        weights = [len(held) * power for held, power in zip(self._held, self._power, strict=True)]
        level = dice.choices(range(LEVELS + 1), weights)[0]
        # 1/(N·P)^β over the largest, which is that of the lowest level that holds something.
        least = next(power for held, power in zip(self._held, self._power, strict=True) if held and power)
        return level, dice.randrange(len(self._held[level])), (least / self._power[level]) ** beta

    def at(self, level: int, place: int) -> Transition:
        return self._held[level][place]

    def move(self, level: int, place: int, error: float) -> None:
        held = self._held[level]
        held[place], held[-1] = held[-1], held[place]
        moved = held.pop()
        self._held[max(round(LEVELS * LEAST_PRIORITY), round(LEVELS * min(1.0, abs(error))))].append(moved)


def uniform(n: int, dice: random.Random) -> int:
    """Replay with equal chances."""
    walk, held, updates = Walk(n, dice), list(memory(n)), 0
    while not walk.learned:
        state, action, _ = dice.choice(held)
        walk.update(state, action)
        updates += 1
    return updates


def prioritised(n: int, dice: random.Random, alpha: float, beta: float | None = None) -> int:
    """Replay in proportion to priority^α; beta: with importance weights whose β goes from there to 1."""
    walk, levels, updates = Walk(n, dice), Levels(list(memory(n)), alpha), 0
    over = 2 ** (n + 2)
    while not walk.learned:
        now = 0.0 if beta is None else min(1.0, beta + (1 - beta) * updates / over)
        level, place, weight = levels.draw(dice, now)
        state, action, _ = levels.at(level, place)
        levels.move(level, place, walk.update(state, action, weight))
        updates += 1
    return updates


def oracle(n: int, dice: random.Random) -> int:
    """Replay what takes most off the error, which only the truth tells."""
    walk, updates = Walk(n, dice), 0
    while not walk.learned:
        state, action = max(((s, a) for s in range(n) for a in (0, 1)), key=lambda one: walk.gain(*one))
        walk.update(state, action)
        updates += 1
    return updates


REPLAYS: dict[str, Callable[[int, random.Random], int]] = {
    "uniform": uniform,
    "oracle": oracle,
    "α 1": functools.partial(prioritised, alpha=1.0),
    "α 0.6": functools.partial(prioritised, alpha=0.6),
    "α 0.6, β 0.4→1": functools.partial(prioritised, alpha=0.6, beta=0.4),
}


def main(argv: Sequence[str] | None = None) -> dict[int, dict[str, float]]:
    """Print the table, and return the median updates of each replay, by n."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most", type=int, default=16, help="largest n")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(argv)
    print(f"{'n':>3} {'memory':>8} " + " ".join(f"{name:>20}" for name in REPLAYS))
    found: dict[int, dict[str, float]] = {}
    for n in range(10, options.most + 1, 2):
        row = found[n] = {
            name: statistics.median(replay(n, random.Random(seed)) for seed in range(options.seeds))
            for name, replay in REPLAYS.items()
        }
        numbers = " ".join(f"{updates:12,.0f} {row['uniform'] / updates:6.1f}x" for updates in row.values())
        print(f"{n:3} {2 ** (n + 1) - 2:8,} {numbers}", flush=True)
    return found


if __name__ == "__main__":
    main()

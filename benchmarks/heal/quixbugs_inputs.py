"""Random inputs for QuixBugs, within its preconditions.

Each row draws the arguments of one program, small enough that the exponential ones end at once. Programs on nodes get
a text to be evaluated instead, in which `Node` is QuixBugs' own class.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Draw = Callable[[random.Random], Any]


def draw(name: str, chooser: random.Random, count: int) -> list[Any]:
    """So many different inputs, or fewer where there are not so many; each is a list of arguments or a call."""
    drawn: dict[str, Any] = {}
    for _ in range(count * 4):
        given = INPUTS[name](chooser)
        drawn.setdefault(repr(given), given)
        if len(drawn) == count:
            break
    return list(drawn.values())


def _ints(r: random.Random, most: int = 9, low: int = 0, high: int = 20) -> list[int]:
    return [r.randint(low, high) for _ in range(r.randint(0, most))]


def _distinct(r: random.Random, most: int = 8, low: int = 0, high: int = 30, least: int = 0) -> list[int]:
    return r.sample(range(low, high), r.randint(least, most))


def _word(r: random.Random, letters: str = "abcd", most: int = 7) -> str:
    return "".join(r.choice(letters) for _ in range(r.randint(0, most)))


def _nested(r: random.Random, depth: int = 3) -> list[Any]:
    return [
        _nested(r, depth - 1) if depth and r.random() < 0.4 else r.randint(0, 9)
        for _ in range(r.randint(0, 4))
    ]


def _parens(r: random.Random) -> list[Any]:
    if r.random() < 0.5:
        return [_word(r, "()", 8)]
    text = ""
    for _ in range(r.randint(0, 5)):
        at = r.randint(0, len(text))
        text = text[:at] + "()" + text[at:]
    return [text]


def _kheap(r: random.Random) -> list[Any]:
    """Return a list in which no item is more than k places from its sorted place."""
    k = r.randint(0, 4)
    values = sorted(_ints(r, 9))
    for start in range(0, len(values), k + 1):
        part = values[start : start + k + 1]
        r.shuffle(part)
        values[start : start + k + 1] = part
    return [values, k]


def _knapsack(r: random.Random) -> list[Any]:
    return [r.randint(1, 40), [[r.randint(1, 20), r.randint(1, 30)] for _ in range(r.randint(0, 6))]]


def _kth(r: random.Random) -> list[Any]:
    values = _ints(r, 9) or [r.randint(0, 9)]
    return [values, r.randrange(len(values))]


def _palindrome(r: random.Random) -> list[Any]:
    half = [r.randint(1, 9)] + [r.choice([0, 3, 9, 9]) for _ in range(r.randint(0, 3))]
    return [half + half[::-1][r.randint(0, 1) :]]


def _permutation(r: random.Random) -> list[Any]:
    values = _distinct(r, 6, least=2)
    if values == sorted(values, reverse=True):  # the last one has no next
        values.sort()
    return [values]


def _tokens(r: random.Random, depth: int = 3) -> list[Any]:
    """Draw an arithmetic expression in infix form."""
    tokens: list[Any] = [r.randint(1, 9)]
    for _ in range(r.randint(0, depth)):
        tokens += [r.choice("+-*/"), r.randint(1, 9)]
    return tokens


def _rpn(r: random.Random) -> list[Any]:
    tokens: list[Any] = [float(r.randint(1, 9))]
    for _ in range(r.randint(0, 4)):
        other, operator = float(r.randint(1, 9)), r.choice("+-*/")
        tokens = [*tokens, other, operator] if r.random() < 0.6 else [other, *tokens, operator]
    return [tokens]


def _text(r: random.Random) -> list[Any]:
    words = [_word(r, "abcdefg", 9) or "x" for _ in range(r.randint(0, 14))]
    return [" ".join(words), r.randint(3, 20)]


def _successors(r: random.Random, count: int) -> str:
    """Source that makes a graph of so many nodes in a list `nodes`."""
    lines = [f"nodes = [Node(str(i), None, []) for i in range({count})]"]
    for i in range(count):
        targets = r.sample(range(count), r.randint(0, min(3, count)))
        lines.append(f"nodes[{i}].successors = [{', '.join(f'nodes[{t}]' for t in targets)}]")
    return "\n".join(lines)


def _search(name: str) -> Draw:
    def drawn(r: random.Random) -> str:
        count = r.randint(1, 6)
        return f"{_successors(r, count)}\n{name}(nodes[{r.randrange(count)}], nodes[{r.randrange(count)}])"

    return drawn


def _chain(count: int) -> str:
    lines = [f"nodes = [Node(i) for i in range({count})]"]
    lines += [f"nodes[{i}].successor = nodes[{i + 1}]" for i in range(count - 1)]
    return "\n".join(lines)


def _cycle(r: random.Random) -> str:
    count = r.randint(1, 7)
    back = f"\nnodes[-1].successor = nodes[{r.randrange(count)}]" if r.random() < 0.5 else ""
    return f"{_chain(count)}{back}\ndetect_cycle(nodes[0])"


def _reverse(r: random.Random) -> str:
    count = r.randint(1, 7)
    walk = "found = []\nwhile node:\n    found.append(node.value)\n    node = node.successor\nfound"
    return f"{_chain(count)}\nnode = reverse_linked_list(nodes[0])\n{walk}"


def _edges(r: random.Random, names: list[Any], low: int, *, acyclic: bool) -> dict[tuple[Any, Any], int]:
    """Weighted edges between names; without cycles, negative weights cannot run away."""
    pairs = [
        (a, b) for i, a in enumerate(names) for j, b in enumerate(names) if (i < j if acyclic else i != j)
    ]
    chosen = r.sample(pairs, r.randint(min(1, len(pairs)), min(len(pairs), 8)))
    return {pair: r.randint(low, 12) for pair in chosen}


def _spanning(r: random.Random) -> str:
    """Different weights, so that there is one least tree."""
    edges = _edges(r, list(range(1, r.randint(3, 6))), 1, acyclic=True)
    weights = r.sample(range(1, 40), len(edges))
    return f"minimum_spanning_tree({dict(zip(edges, weights, strict=True))!r})"


def _path_length(r: random.Random) -> str:
    count = r.randint(1, 6)
    edges = _edges(r, list(range(count)), 1, acyclic=False)
    lines = [f"nodes = [Node(str(i), None, []) for i in range({count})]"]
    lines += [f"nodes[{a}].successors.append(nodes[{b}])" for a, b in edges]
    lengths = ", ".join(f"(nodes[{a}], nodes[{b}]): {length}" for (a, b), length in edges.items())
    ends = f"nodes[{r.randrange(count)}], nodes[{r.randrange(count)}]"
    return "\n".join([*lines, f"shortest_path_length({{{lengths}}}, {ends})"])


def _path_lengths(r: random.Random) -> str:
    count = r.randint(2, 6)
    acyclic = r.random() < 0.5
    edges = _edges(r, list(range(count)), -3 if acyclic else 1, acyclic=acyclic)
    return f"shortest_path_lengths({count}, {edges!r})"


def _paths(r: random.Random) -> str:
    names = list("ABCDEF"[: r.randint(2, 6)])
    acyclic = r.random() < 0.5
    return f"shortest_paths('A', {_edges(r, names, -3 if acyclic else 1, acyclic=acyclic)!r})"


def _topological(r: random.Random) -> str:
    count = r.randint(1, 7)
    order = r.sample(range(count), count)
    lines = [f"nodes = [Node(i, None, [], [], [], []) for i in range({count})]"]
    for i in range(count):
        for j in range(i + 1, count):
            if r.random() < 0.4:
                lines.append(f"nodes[{order[i]}].outgoing_nodes.append(nodes[{order[j]}])")
                lines.append(f"nodes[{order[j]}].incoming_nodes.append(nodes[{order[i]}])")
    return "\n".join([*lines, "[node.value for node in topological_ordering(nodes)]"])


INPUTS: dict[str, Draw] = {
    "bitcount": lambda r: [r.randint(0, 5000)],
    "breadth_first_search": _search("breadth_first_search"),
    "bucketsort": lambda r: [_ints(r, 9, 0, 11), 12],
    "depth_first_search": _search("depth_first_search"),
    "detect_cycle": _cycle,
    "find_first_in_sorted": lambda r: [sorted(_ints(r, 9, 0, 8)), r.randint(-1, 9)],
    "find_in_sorted": lambda r: [sorted(_distinct(r, 9, 0, 15)), r.randint(-1, 15)],
    "flatten": lambda r: [_nested(r)],
    "gcd": lambda r: [r.randint(1, 200), r.randint(0, 200)],
    "get_factors": lambda r: [r.randint(1, 400)],
    "hanoi": lambda r: [r.randint(0, 5), *r.sample([1, 2, 3], 2)],
    "is_valid_parenthesization": _parens,
    "kheapsort": _kheap,
    "knapsack": _knapsack,
    "kth": _kth,
    "lcs_length": lambda r: [_word(r), _word(r)],
    "levenshtein": lambda r: [_word(r, "abc", 6), _word(r, "abc", 6)],
    "lis": lambda r: [_distinct(r, 9)],
    "longest_common_subsequence": lambda r: [_word(r), _word(r)],
    "max_sublist_sum": lambda r: [_ints(r, 8, -9, 9)],
    "mergesort": lambda r: [_ints(r)],
    "minimum_spanning_tree": _spanning,
    "next_palindrome": _palindrome,
    "next_permutation": _permutation,
    "pascal": lambda r: [r.randint(1, 9)],
    "possible_change": lambda r: [sorted(_distinct(r, 4, 1, 12)), r.randint(0, 25)],
    "powerset": lambda r: [_distinct(r, 5)],
    "quicksort": lambda r: [_ints(r)],
    "reverse_linked_list": _reverse,
    "rpn_eval": _rpn,
    "shortest_path_length": _path_length,
    "shortest_path_lengths": _path_lengths,
    "shortest_paths": _paths,
    "shunting_yard": lambda r: [_tokens(r, 4)],
    "sieve": lambda r: [r.randint(0, 60)],
    "sqrt": lambda r: [r.randint(1, 90), r.choice([0.5, 0.1, 0.01])],
    "subsequences": lambda r: [r.randint(0, 4), r.randint(2, 8), r.randint(0, 4)],
    "to_base": lambda r: [r.randint(1, 5000), r.randint(2, 36)],
    "topological_ordering": _topological,
    "wrap": _text,
}

"""Code that does not parse: how much of it is restored.

Functions of the standard library are broken at random, each in one place. A token is dropped, a token is doubled, two
neighbours change places, or a line gets another indentation. Broken functions that still compile are dropped.

`readable`: Some proposal compiles. Every proposal does, so it only says that there is one.
`restored`: A proposal has exactly the syntax tree of the original function. `first` is the share for the first
    proposal, `any` the share for any of the advisor's proposals.

If a name, a number or a text was dropped, no method can know it. That share is reported too, because it limits the
possible result.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import random
import re
import statistics
import sysconfig
import textwrap
import time
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path

from healkit.parts.explain.syntax_repair.draft import compiler_message
from healkit.parts.explain.syntax_repair.nearest_text import nearest

MODULES = [
    "argparse",
    "ast",
    "calendar",
    "collections/__init__",
    "configparser",
    "copy",
    "csv",
    "datetime",
    "difflib",
    "fractions",
    "functools",
    "heapq",
    "inspect",
    "ipaddress",
    "json/decoder",
    "optparse",
    "pathlib",
    "pprint",
    "random",
    "shlex",
    "shutil",
    "statistics",
    "string",
    "textwrap",
    "tokenize",
    "urllib/parse",
    "uuid",
    "zipfile",
]
KINDS = ("drop", "double", "swap", "indent")


def functions() -> list[str]:
    """Return the functions of those modules with 3 to 40 lines, dedented."""
    found = []
    root = Path(sysconfig.get_paths()["stdlib"])
    for name in MODULES:
        path = root / f"{name}.py"
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and 3 <= (node.end_lineno or 0) - node.lineno + 1 <= 40:
                lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
                code = textwrap.dedent("".join(lines))
                if compiler_message(code) is None:
                    found.append(code)
    return sorted(set(found))


def broken(code: str, kind: str, rng: random.Random) -> tuple[str, str] | None:
    """Put one mistake of that kind into the code; return it with the changed token, or None if it still compiles."""
    if kind == "indent":
        lines = code.splitlines(keepends=True)
        number = rng.choice([n for n, line in enumerate(lines) if line.strip() and n])
        indent = len(lines[number]) - len(lines[number].lstrip())
        lines[number] = " " * max(0, indent + rng.choice((-4, 4, -1, 1, -indent))) + lines[number].lstrip()
        text, what = "".join(lines), "indent"
    else:
        starts = [0]
        for line in code.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        tokens = [
            (starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1], t)
            for t in tokenize.generate_tokens(io.StringIO(code).readline)
            if t.type in {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
        ]
        place = rng.randrange(len(tokens) - 1)
        start, end, token = tokens[place]
        after, after_end, following = tokens[place + 1]
        if kind == "swap" and following.start[0] != token.end[0]:
            return None
        keyword = iskeyword(token.string)
        what = token.string if token.type == tokenize.OP or keyword else tokenize.tok_name[token.type].lower()
        if kind == "drop":
            gap = end + (code[end : end + 1] == " " and code[start - 1 : start] in {" ", "\n", ""})
            text = code[:start] + code[gap:]
        elif kind == "double":
            text = code[:end] + (" " if token.type != tokenize.OP else "") + token.string + code[end:]
        else:
            text = code[:start] + following.string + code[end:after] + token.string + code[after_end:]
            if end == after and tokenize.OP not in {token.type, following.type}:
                return None
            if re.search(r"\w$", code[:start]) and following.type != tokenize.OP:
                return None  # two words would become one
            if re.match(r"\w", code[after_end:]) and token.type != tokenize.OP:
                return None
    return (text, what) if compiler_message(text) is not None else None


def samples(count: int, seed: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield original, broken code, kind and changed token; each kind equally often."""
    rng = random.Random(seed)
    pool = functions()
    for number in range(count):
        while True:
            code, kind = rng.choice(pool), KINDS[number % len(KINDS)]
            found = broken(code, kind, rng)
            if found is not None:
                yield code, found[0], kind, found[1]
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--show", action="store_true", help="print what was not restored, to stderr")
    options = parser.parse_args()
    tally: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seconds = []
    for original, text, kind, what in samples(options.count, options.seed):
        began = time.perf_counter()
        proposals = [item.text for item in nearest(text)]
        seconds.append(time.perf_counter() - began)
        wanted = ast.dump(ast.parse(original))
        right = [ast.dump(ast.parse(code)) == wanted for code in proposals]
        unknowable = kind == "drop" and what in {"name", "number", "string"}
        for group in (kind, "all", *(("knowable",) if not unknowable else ())):
            row = tally[group]
            row["count"] += 1
            row["readable"] += bool(proposals)
            row["first"] += bool(right and right[0])
            row["any"] += any(right)
        if options.show and not any(right):
            show(original, text, kind, what, proposals)
    print(json.dumps({"seed": options.seed, "functions": len(functions()), **summary(tally, seconds)}))


def summary(tally: dict[str, dict[str, int]], seconds: list[float]) -> dict[str, object]:
    """Return shares by kind, and times."""
    shares: dict[str, object] = {
        group: {
            "count": row["count"],
            **{key: round(row[key] / row["count"], 3) for key in ("readable", "first", "any")},
        }
        for group, row in tally.items()
    }
    ordered = sorted(seconds)
    times = {
        "median_s": round(statistics.median(ordered), 3),
        "p95_s": round(ordered[int(0.95 * len(ordered))], 3),
    }
    return {**shares, **times}


def show(original: str, text: str, kind: str, what: str, proposals: list[str]) -> None:
    """Print a function that was not restored: the line in its original, broken and fixed form."""
    import difflib
    import sys

    lines = [line for line in difflib.ndiff(original.splitlines(), text.splitlines()) if line[0] in "+-"]
    first = proposals[0].splitlines() if proposals else []
    mend = [line for line in difflib.ndiff(text.splitlines(), first) if line[0] == "+"]
    print(
        f"{kind} {what!r} {compiler_message(text)}", *lines, "  mended:", *mend, "", sep="\n", file=sys.stderr
    )


if __name__ == "__main__":
    main()

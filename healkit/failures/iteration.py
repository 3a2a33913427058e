"""Loops and unpacking."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.inference import type_of


def _counted_to(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `range`, a list of one or the digits: `for i in 10`, `for i in len(x)`, `for digit in number`."""
    targets: list[tuple[ast.expr, bool]] = []
    if isinstance(site.statement, ast.For):
        targets.append((site.statement.iter, True))
    targets += [(node.iter, True) for node in site.nodes(ast.comprehension)]
    targets += [
        (call.args[0], False)
        for call in site.nodes(ast.Call)
        if isinstance(call.func, ast.Name)
        and call.func.id in {"list", "sum", "sorted", "set", "max", "min", "enumerate", "tuple", "map"}
        and len(call.args) == 1
    ]
    for node, loops in targets:
        if type_of(node, site.values) not in {"", "int"}:
            continue
        if loops or isinstance(node, ast.Call):
            yield Proposal("Use `range` to count up to a number.", site.source.wrap(node, "range(", ")"))
        if not loops:
            yield Proposal("Put the single number into a list.", site.source.wrap(node, "[", "]"), less=0.05)
        if not isinstance(node, ast.Call):
            yield Proposal(
                "Convert the number to a string to get its digits.",
                site.source.wrap(node, "str(", ")"),
                less=0.1,
            )


def _pairs(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use `items()` or `enumerate`: `for k, v in d` gets the keys only."""
    loops: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(site.statement, ast.For):
        loops.append((site.statement.target, site.statement.iter))
    loops += [(node.target, node.iter) for node in site.nodes(ast.comprehension, near=False)]
    for target, source in loops:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        if isinstance(source, ast.Call) and getattr(source.func, "attr", "") in {"items", "most_common"}:
            continue
        kind = type_of(source, site.values)
        if kind in {"", "dict"}:
            yield Proposal("Use `.items()` for the keys and values of a dict.", site.source.wrap(source, "", ".items()"),
                      less=0.0 if kind else 0.05)  # fmt: skip
        if kind != "dict":
            yield Proposal(
                "Use `enumerate` for the index and the item.", site.source.wrap(source, "enumerate(", ")")
            )


def _changed_while_read(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Loop over a copy of what the loop changes."""
    loops = [node for node in site.body_nodes(ast.For) if node is site.statement] or list(
        site.body_nodes(ast.For)
    )
    for loop in loops:
        yield Proposal(
            "The loop changes what it iterates over, so it iterates over a copy.",
            site.source.wrap(loop.iter, "list(", ")"),
        )


def _pieces(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Split once only, at the first or the last separator, or take up the rest."""
    statement, source = site.statement, site.source
    targets = (
        statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    )
    count = len(targets.elts) if isinstance(targets, ast.Tuple | ast.List) else int(match["count"])
    for call in site.nodes(ast.Call, near=False):
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr not in {"split", "rsplit"}
            or len(call.args) > 1
        ):
            continue
        end = source.span(call)[1] - 1
        text = f", {count - 1}" if call.args else f"None, {count - 1}"
        edits = [Edit(end, end, text)]
        yield Proposal(f"Split the string into at most {count} parts.", edits)
        at = source.span(call.func)[1]
        if call.func.attr == "split" and call.args:
            yield Proposal("Split the string from the right.", [Edit(at - 5, at, "rsplit"), *edits], less=0.1)
    if isinstance(targets, ast.Tuple) and targets.elts and isinstance(targets.elts[-1], ast.Name):
        last = targets.elts[-1]
        yield Proposal(
            "Collect the remaining values in the last name.", source.replace(last, f"*{last.id}"), less=0.2
        )


_PAIRS = Fix(
    name="pairs",
    mistake="a loop that unpacks two values where there is one",
    only=r"cannot unpack non-iterable|\(expected 2",
    priority=0.85,
    propose=_pairs,
    example=FixExample(
        "def tool(a):\n    return [k for k, v in a if v]\n",
        "def tool(a):\n    return [k for k, v in a.items() if v]\n",
        {"a": {"bcd": 1}},
    ),
    lookalike=FixExample("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": [1, 2, 3]}),
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TypeError",),
        r"(?:'(?P<kind>[\w.]+)' object is not iterable|argument of type '(?P<other>[\w.]+)' is not (?:iterable|a container))",
        explanations=(
            ExplanationText(
                "not_iterable",
                what="A `{kind}{other}` cannot be iterated over.",
                why="`for`, `in`, `list`, `sum` and unpacking need an iterable. A number is not iterable.",
                hint="Should the number be in `range(…)`, or the value in a list?",
                fix="Use `range(…)` to count, or put the value into a list.",
                example="for i in 3:\n    pass",
            ),
        ),
        fixes=(
            Fix(
                name="counted_to",
                mistake="a number that is iterated over",
                only=r"'(?:int|float)' object is not iterable",
                priority=0.88,
                propose=_counted_to,
                example=FixExample(
                    "def tool(a):\n    return [i for i in len(a)]\n",
                    "def tool(a):\n    return [i for i in range(len(a))]\n",
                    {"a": "bc"},
                ),
                lookalike=FixExample("def tool(a):\n    b, c = a\n    return b\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"cannot unpack non-iterable",
        fixes=(_PAIRS,),
    ),
    FailurePattern(
        ("ValueError",),
        r"too many values to unpack \(expected (?P<count>\d+)",
        explanations=(
            ExplanationText(
                "unpack_many",
                what="The left side of `=` has {count:name}, but the right side has more values.",
                why="Unpacking needs exactly as many values as names.",
                hint="How many values are on the right? Print them.",
                fix="Split only once (`.split(…, 1)`), or collect the rest with `*` before the last name.",
                example="a, b = 'x=y=z'.split('=')",
            ),
        ),
        fixes=(
            _PAIRS,
            Fix(
                name="pieces",
                mistake="a string that splits into more parts than there are names",
                priority=0.9,
                propose=_pieces,
                example=FixExample(
                    'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n',
                    'def tool(a):\n    name, value = a.split("=", 1)\n    return {name: value}\n',
                    {"a": "b=c=d"},
                ),
                lookalike=FixExample(
                    'def tool(a):\n    name, value = a.split("=")\n    return {name: value}\n',
                    arguments={"a": "b"},
                ),
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"not enough values to unpack \(expected (?:at least )?(?P<count>\d+), got (?P<got>\d+)\)",
        explanations=(
            ExplanationText(
                "unpack_few",
                what="The code expects {count:value} but got {got}.",
                why=(
                    "Unpacking needs exactly as many values as names. A string without the separator stays "
                    "in one piece."
                ),
                hint="Which value is it? Print it before you unpack it.",
                fix="Skip such values, or use `.partition(…)`, which always returns three parts.",
                example="a, b = 'x'.split('=')",
            ),
        ),
        fixes=(_PAIRS,),
    ),
    FailurePattern(
        ("RuntimeError",),
        r"(?P<kind>dictionary|Set|OrderedDict|deque) (?:changed size|mutated|changed) during iteration|dictionary keys changed",
        explanations=(
            ExplanationText(
                "changed_size",
                what="A collection was changed during iteration.",
                why=(
                    "The loop would lose its position, so Python stops it. Lists raise no error: the loop "
                    "silently skips items."
                ),
                hint="Which line in the loop adds or removes something?",
                fix="Loop over a copy made with `list(…)`.",
                example="d = {1: 2}\nfor k in d:\n    d[k + 1] = 0",
            ),
        ),
        fixes=(
            Fix(
                name="changed_while_read",
                mistake="a dict or a set that changes during iteration",
                priority=0.95,
                propose=_changed_while_read,
                example=FixExample(
                    "def tool(a):\n    for k in a:\n        if not a[k]:\n            del a[k]\n    return a\n",
                    "def tool(a):\n    for k in list(a):\n        if not a[k]:\n            del a[k]\n    return a\n",
                    {"a": {"b": 0, "c": 1}},
                ),
                lookalike=FixExample("def tool(a):\n    raise RuntimeError('changed')\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"(?:(?P<text>.+) is not in (?:list|tuple|deque)|list\.(?:remove|index)\(x\): x not in list|substring not found|tuple\.index)",
        explanations=(
            ExplanationText(
                "not_in_list",
                what="The value was not found.",
                why="`index` and `remove` need a value that exists, with the same type and spelling.",
                hint="Which values exist at this line?",
                fix="Check first, with `in`. For strings, `find` returns -1 instead of an error.",
                example="[1].remove(2)",
            ),
        ),
    ),
    FailurePattern(
        ("StopIteration",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "stop_iteration",
                what="`next` was called on an exhausted iterator.",
                why=(
                    "The generator or iterator has already returned all its values; each can be iterated "
                    "over only once."
                ),
                hint="Was it used up earlier, by `list` or a loop?",
                fix="Give a default: `next(items, None)`, or create the iterator again.",
                example="next(iter([]))",
            ),
        ),
    ),
)

"""Guards against empty values, and rows for any exception."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from healkit.contracts.healing import Edit
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


def _guarded(
    site: Site, condition: str, what: str, more: list[Edit] | None = None, above: str = ""
) -> Iterator[Proposal]:
    """Insert `if condition: return …` above the failing line: what an example expects there, else None."""
    statement, source = site.statement, site.source
    if statement is None or site.function is None or isinstance(statement, ast.While):
        return
    demanded = site.demanded(condition) if site.function is site.entry else []
    lines = [above] if above else []
    for number, value in enumerate([v for v in demanded if _short(v)] or [None]):
        known = bool(demanded)
        text = [*lines, f"if {condition}:", f"{source.indent_unit}return {value!r}"]
        edits = source.insert_before(statement, *text)
        if edits:
            reason = f"Return {value!r} if {what}." if known else f"Return None if {what}."
            yield Proposal(
                reason, [*edits, *(more or [])], less=0.05 * number if known else 0.6, guard=not known
            )


def _short(value: Any) -> bool:
    return len(repr(value)) <= 200


def _free(site: Site, node: ast.AST) -> bool:
    """Return whether a node can be evaluated above its statement: no comprehension or lambda binds its names."""
    inner = {
        n.id
        for c in site.nodes(ast.comprehension, near=False)
        for n in ast.walk(c.target)
        if isinstance(n, ast.Name)
    }
    if isinstance(site.statement, ast.For):
        inner |= {n.id for n in ast.walk(site.statement.target) if isinstance(n, ast.Name)}
    inner |= {arg.arg for f in site.nodes(ast.Lambda, near=False) for arg in f.args.args}
    return not any(isinstance(n, ast.Name) and n.id in inner for n in ast.walk(node))


def _none(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    bases: list[ast.expr] = [n.value for n in site.nodes(ast.Attribute) if n.attr == (match["name"] or "")]
    if match["name"] is None:
        bases = [n.value for n in site.nodes(ast.Subscript)]
    for base in bases[:1]:
        text = site.source.segment(base)
        if not _free(site, base):
            return
        if isinstance(base, ast.Call) and (
            bool(base.args) or match["name"] in {"group", "groups", "start", "end", "span"}
        ):
            yield from _guarded(
                site,
                "found is None",
                f"`{text}` returns `None`",
                site.source.replace(base, "found"),
                f"found = {text}",
            )
        else:
            yield from _guarded(site, f"{text} is None", f"`{text}` is None")


def _zero(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    divisions = [n for n in site.nodes(ast.BinOp) if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod)]
    for division in divisions[:1]:
        divisor = division.right
        text = site.source.segment(divisor)
        if not _free(site, divisor):
            continue
        condition = f"{site.source.atom(divisor)} == 0"
        if (
            isinstance(divisor, ast.Call)
            and getattr(divisor.func, "id", "") == "len"
            and len(divisor.args) == 1
        ):
            condition = f"not {site.source.segment(divisor.args[0])}"
        yield from _guarded(site, condition, f"`{text}` is 0")
        parent = site.source.parents[division]
        if site.function is not site.entry or not isinstance(parent, ast.Return):
            test = site.source.atom(divisor)
            edits = site.source.replace(division, f"({site.source.segment(division)} if {test} else 0)")
            yield Proposal(f"If `{text}` is 0, use 0 as the result.", edits, less=0.65, guard=True)


def _empty(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Return early, or give a default, where there is nothing to take the first, largest or mean of."""
    for call in site.nodes(ast.Call)[:3]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if (
            name in {"max", "min", "next"}
            and len(call.args) == 1
            and not any(k.arg == "default" for k in call.keywords)
        ):
            end = site.source.span(call)[1] - 1
            returned = isinstance(site.source.parents[call], ast.Return) and site.function is site.entry
            held = site.demanded(f"not {site.source.segment(call.args[0])}") if returned else []
            returned = bool(held)
            for value in held or [None]:
                text = f", {value!r}" if name == "next" else f", default={value!r}"
                yield Proposal(f"If there are no values, use {value!r}.", [Edit(end, end, text)],
                          less=0.0 if returned else 0.6, guard=not returned)  # fmt: skip
        if name in {"max", "min", "mean", "median", "choice", "reduce", "pop", "stdev", "mode"}:
            given = call.args[-1] if call.args else getattr(call.func, "value", None)
            if isinstance(given, ast.Name | ast.Attribute | ast.Subscript) and _free(site, given):
                text = site.source.segment(given)
                yield from _guarded(site, f"not {text}", f"`{text}` is empty")


def _no_such_place(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript)[:1]:
        base = site.source.atom(node.value)
        if isinstance(node.slice, ast.Slice) or not _free(site, node) or isinstance(node.value, ast.Call):
            continue
        if isinstance(node.slice, ast.Constant) and node.slice.value in {0, 1}:
            condition = f"not {base}" if node.slice.value == 0 else f"len({base}) < 2"
        elif isinstance(node.slice, ast.UnaryOp):
            condition = f"not {base}"
        else:
            condition = f"{site.source.segment(node.slice)} >= len({base})"
        yield from _guarded(site, condition, f"`{site.source.segment(node.value)}` has no such index")


_NONE = "import re\n\n\ndef tool(a):\n    match = re.search('b', a)\n{0}    return match.group()\n"
_MEAN = "def tool(a):\n{0}    return sum(a) / len(a)\n"


_LAST = "def tool(a):\n{0}    return a[0]\n"


GUARDS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("AttributeError", "TypeError"),
        r"'NoneType' object (?:has no attribute '(?P<name>\w+)'|is not subscriptable)",
        fixes=(
            Fix(
                name="none",
                mistake="a search result of `None` that is used",
                priority=0.65,
                propose=_none,
                example=FixExample(
                    _NONE.format(""),
                    _NONE.format("    if match is None:\n        return 'none'\n"),
                    {"a": "c"},
                    right="none",
                ),
                lookalike=FixExample("def tool(a):\n    return None + a\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("ZeroDivisionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "zero_division",
                what="The code divided by zero.",
                why=(
                    "The divisor was 0 on this line. Common causes: the length of an empty list, a "
                    "counter that is still 0, or an initial value on the first iteration."
                ),
                hint="Which value in this line can be 0, and on which iteration?",
                fix="Handle that case before this line, or check whether the division is needed.",
                example="1 / 0",
            ),
        ),
        fixes=(
            Fix(
                name="zero",
                mistake="a division by 0",
                priority=0.65,
                propose=_zero,
                example=FixExample(
                    _MEAN.format(""), _MEAN.format("    if not a:\n        return 0\n"), {"a": []}, right=0
                ),
                lookalike=FixExample("def tool(a):\n    return divmod(1, a)\n", arguments={"a": 0}),
            ),
        ),
        kind="zero",
    ),
    FailurePattern(
        ("ValueError",),
        r"(?P<function>max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        explanations=(
            ExplanationText(
                "empty_extreme",
                what="`{function}` was called with an empty iterable.",
                why=(
                    "An empty iterable has no largest or smallest value. Often a filter has removed "
                    "everything."
                ),
                hint="Why is it empty here?",
                fix="Give a default: `{function}(…, default=0)`.",
                example="max([])",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError", "IndexError", "StatisticsError", "StopIteration", "TypeError"),
        r"empty|requires at least|no mode|^$|iterable argument|variance requires",
        fixes=(
            Fix(
                name="empty",
                mistake="the largest, first or mean value of an empty collection",
                priority=0.6,
                propose=_empty,
                example=FixExample(
                    "def tool(a):\n    return max(a)\n",
                    "def tool(a):\n    return max(a, default=0)\n",
                    {"a": []},
                    right=0,
                ),
                lookalike=FixExample("def tool(a):\n    raise ValueError('empty')\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"out of range",
        fixes=(
            Fix(
                name="no_such_place",
                mistake="an index that the list does not have",
                priority=0.6,
                propose=_no_such_place,
                example=FixExample(
                    _LAST.format(""),
                    _LAST.format("    if not a:\n        return 'x'\n"),
                    {"a": ""},
                    right="x",
                ),
                lookalike=FixExample("def tool(a):\n    return [b[0] for b in a]\n", arguments={"a": [[]]}),
            ),
        ),
    ),
)


# Exceptions whose type says enough, and the rows for any


def _raised_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    statement = site.statement
    if isinstance(statement, ast.Raise) and isinstance(
        statement.exc, ast.Constant | ast.JoinedStr | ast.BinOp
    ):
        yield Proposal("Only exceptions can be raised.", site.source.wrap(statement.exc, "ValueError(", ")"))


def _unused_value(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Delete the failing line if nothing reads the name that it gives a value."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or any(isinstance(n, ast.Call) for n in ast.walk(statement.value)):
        return
    reads = [
        n
        for n in ast.walk(site.scope)
        if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
    ]
    if not reads and site.function is not None:
        yield Proposal(f"`{target.id}` is never used, so the line is removed.", site.source.delete(statement))


_OTHER = FixExample("def tool(a):\n    return int(a)\n", arguments={"a": "zzyzx"})


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("RuntimeError",),
        r"asyncio\.run\(\) cannot be called from a running event loop",
        explanations=(
            ExplanationText(
                "running_loop",
                what="`asyncio.run` was called while an event loop is running.",
                why="A notebook already runs an event loop, and a thread can run only one.",
                hint="Is this a notebook cell?",
                fix="In a cell, write `await …` instead of `asyncio.run(…)`.",
                example=(
                    "import asyncio\nasync def a():\n    pass\nasync def b():\n    coroutine = a()\n    try:\n"
                    "        asyncio.run(coroutine)\n    finally:\n        coroutine.close()\nasyncio.run(b())"
                ),
            ),
        ),
    ),
    FailurePattern(
        ("ExceptionGroup", "BaseExceptionGroup"),
        r"\((?P<count>\d+) sub-exceptions?\)$",
        explanations=(
            ExplanationText(
                "exception_group",
                what="The code raised {count:exception} together.",
                why="Code that does several things, such as tasks, collects their exceptions in a group.",
                hint="Which of them is the first that you can explain?",
                example="raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])",
            ),
        ),
    ),
    FailurePattern(
        ("RecursionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "recursion",
                what="A function called itself too many times.",
                why=(
                    "Each call waits for the next one. The recursion never ends without a base case, "
                    "or if the argument never reaches it."
                ),
                hint="For which value should the function return without calling itself?",
                fix="Begin the function with that base case: `if n <= 1: return 1`.",
                example="def f(n):\n    return f(n - 1)\nf(3)",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("AssertionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "assertion",
                what="An `assert` failed.",
                why="The author of this line expected its condition to be true, but it is false.",
                hint="Which value in the condition is not what you expect?",
                fix="Find out where that value comes from before you change the `assert`.",
                example="assert 1 == 2",
            ),
        ),
        kind="assertion",
    ),
    FailurePattern(
        ("NotImplementedError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "not_implemented",
                what="The code that was called is not implemented yet.",
                why=(
                    "`NotImplementedError` marks code that is still to be written, often a method that "
                    "subclasses must define."
                ),
                hint="Which class should define this method?",
                fix="Implement the method, or use a class that has it.",
                example="raise NotImplementedError",
            ),
        ),
    ),
    FailurePattern(
        ("KeyboardInterrupt",),
        r"",
        explanations=(
            ExplanationText(
                "interrupted",
                what="The run was interrupted.",
                why="Stop or Ctrl-C was pressed.",
                example="raise KeyboardInterrupt",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"exceptions must derive from BaseException",
        fixes=(
            Fix(
                name="raised_text",
                mistake="a string that is raised",
                priority=0.85,
                propose=_raised_text,
                example=FixExample(
                    "def tool(a):\n    try:\n        raise 'odd'\n    except ValueError:\n        return a\n",
                    "def tool(a):\n    try:\n        raise ValueError('odd')\n    except ValueError:\n        return a\n",
                    {"a": 1},
                ),
                lookalike=FixExample("def tool(a):\n    raise a\n", arguments={"a": 1}),
            ),
        ),
    ),
    FailurePattern(
        (
            "ZeroDivisionError",
            "IndexError",
            "KeyError",
            "TypeError",
            "ValueError",
            "NameError",
            "AttributeError",
        ),
        fixes=(
            Fix(
                name="unused_value",
                mistake="a failing line whose value is never used",
                priority=0.7,
                propose=_unused_value,
                example=FixExample(
                    "def tool(a):\n    b = 0\n    for n in a:\n        ratio = n / b\n        b += n\n    return b\n",
                    "def tool(a):\n    b = 0\n    for n in a:\n        b += n\n    return b\n",
                    {"a": [1]},
                ),
                lookalike=FixExample("def tool(a):\n    b = 1 / a\n    return b\n", arguments={"a": 0}),
            ),
        ),
    ),
    # Kinds of all other failures, by type.
    FailurePattern(("CodeDoesNotParse", "SyntaxError", "IndentationError", "TabError"), kind="syntax"),
    FailurePattern(("ImportError", "ModuleNotFoundError"), kind="import"),
    FailurePattern(("NameError", "UnboundLocalError"), kind="name"),
    FailurePattern(("AttributeError",), kind="attribute"),
    FailurePattern(("KeyError",), kind="key"),
    FailurePattern(("IndexError",), kind="index"),
    FailurePattern(
        ("FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "PermissionError"), kind="path"
    ),
    FailurePattern(("TypeError",), kind="type"),
    FailurePattern(
        ("ValueError", "JSONDecodeError", "UnicodeDecodeError", "UnicodeEncodeError"), kind="value"
    ),
    FailurePattern(("MemoryError",), kind="memory"),
    FailurePattern(("TimeoutError",), kind="timeout"),
    FailurePattern(
        (),
        explanations=(
            ExplanationText(
                "any",
                what="{ename}: {message}",
                hint="Read the failing line, and check the values in it.",
            ),
        ),
    ),
)

"""Exceptions whose type says enough, and the rows for any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site


def _raised_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    statement = site.statement
    if isinstance(statement, ast.Raise) and isinstance(
        statement.exc, ast.Constant | ast.JoinedStr | ast.BinOp
    ):
        yield Proposal(
            "Only an exception can be raised.", site.source.wrap(statement.exc, "ValueError(", ")")
        )


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
        yield Proposal(f"Nobody reads `{target.id}`, so the line is left out.", site.source.delete(statement))


_OTHER = FixExample("def tool(a):\n    return int(a)\n", arguments={"a": "zzyzx"})


PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("RuntimeError",),
        r"asyncio\.run\(\) cannot be called from a running event loop",
        explanations=(
            ExplanationText(
                "running_loop",
                what="`asyncio.run` was called where an event loop runs already.",
                why="A notebook has a running loop of its own, and there can be only one in a thread.",
                hint="Is this cell in a notebook?",
                fix="Write `await …` in the cell in the place of `asyncio.run(…)`.",
                example=(
                    "import asyncio\nasync def a():\n    pass\nasync def b():\n    coroutine = a()\n    try:\n"
                    "        asyncio.run(coroutine)\n    finally:\n        coroutine.close()\nasyncio.run(b())"
                ),
            ),
        ),
    ),
    FailurePattern(
        ("RecursionError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "recursion",
                what="A function called itself until there was no room for more calls.",
                why=(
                    "Each call waits for the next one. Without a case that answers at once, or when the value never gets there, that "
                    "has no end."
                ),
                hint="For which value should the function answer without calling itself?",
                fix="Begin the function with that case: `if n <= 1: return 1`.",
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
                what="An `assert` did not hold.",
                why="Whoever wrote the line was sure that its condition is true here. It was not.",
                hint="Which of the values in the condition is not what was expected?",
                fix="Find where that value comes from, rather than changing the `assert`.",
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
                what="The part that was called has not been written yet.",
                why="`NotImplementedError` stands where code is still to come, often in a class that others derive from.",
                hint="Which class should define this method?",
                fix="Write the method, or call the class that has it.",
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
                what="The code was stopped from outside.",
                why="Somebody pressed Stop, or Ctrl-C.",
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
                mistake="a text is raised",
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
                mistake="the line that fails gives a value that nobody reads",
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
                hint="Read the line it names, and look at the values that were in it.",
            ),
        ),
    ),
)

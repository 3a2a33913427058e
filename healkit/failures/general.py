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

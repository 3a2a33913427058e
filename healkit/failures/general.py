"""Exceptions whose type says all there is to say."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

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
    # What a diagnosis calls the rest, by type.
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

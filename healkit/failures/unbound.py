"""Local names that are read before they have a value."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("UnboundLocalError",),
        r"local variable '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "unbound_local",
                what="The function reads its own variable `{name}` before it has given it a value.",
                why=(
                    "An assignment to `{name}` anywhere in a function makes the name the function's own, everywhere in it. "
                    "A variable of that name outside is then not looked at."
                ),
                hint="On which way through the function is `{name}` never assigned?",
                fix="Assign `{name}` at the top of the function, or give the function's own variable another name.",
                example="def f(x):\n    if x:\n        y = 1\n    return y\nf(0)",
            ),
        ),
    ),
    FailurePattern(
        ("NameError",),
        r"free variable '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "free_variable",
                what="An inner function reads `{name}` before the function around it has given it a value.",
                why="The inner function does not remember a value, it looks `{name}` up when it is called.",
                hint="Is the inner function called too early?",
                fix="Assign `{name}` before the call.",
                example="def f():\n    def g():\n        return x\n    g()\n    x = 1\nf()",
            ),
        ),
    ),
)

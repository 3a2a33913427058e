"""Names that are not defined."""

from __future__ import annotations

import sys

from healkit.failures.pattern import ExplanationText, FailurePattern

#: Usual abbreviations of modules.
_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "dt": "datetime"}
_MODULES = "|".join(sorted((*_ALIASES, *(m for m in sys.stdlib_module_names if not m.startswith("_")))))

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("NameError",),
        r"name '(?P<name>\w+)' is not defined",
        explanations=(
            ExplanationText(
                "name_module",
                what="`{name}` is used here, and nothing of that name has been imported.",
                why="A module must be imported before its name means anything, in every notebook and in every tool again.",
                hint="Which line should bring `{name}` in?",
                fix="Put an import of `{name}` at the top of the code.",
                only=rf"name '(?:{_MODULES})'",
                example="math.sqrt(4)",
            ),
            ExplanationText(
                "name_near",
                what="Nothing is called `{name}` here.",
                why="Python looked for a variable, a function or a module of exactly that name. Something much like it is there: {near}.",
                hint="Compare the spelling letter by letter, capitals too.",
                fix="If {near} was meant, write that in the place of `{name}`.",
                needs="near",
                example="longest = ''\nprint(longets)",
            ),
            ExplanationText(
                "name_quotes_or_later",
                what="Nothing is called `{name}` here.",
                why="Either it gets its value further down, or in a cell that has not been run, or it was meant as text.",
                hint="Where does `{name}` get its value, and has that line been run before this one?",
                fix="Give `{name}` a value above this line; if it is text, write it in quotes.",
                example="print(quite_unknown_thing)",
            ),
        ),
    ),
)

"""Code that Python cannot read."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("SyntaxError",),
        r"'(?P<bracket>[\[({{])' was never closed",
        explanations=(
            ExplanationText(
                "never_closed",
                what="A `{bracket}` was never closed.",
                why="Python read to the end of the code and found no matching bracket.",
                hint="Where should the bracket close?",
                fix="Close it; most editors highlight the bracket that matches the one at the cursor.",
                example="print((1 + 2)",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"unmatched '(?P<bracket>[\])}}])'|closing parenthesis '(?P<closing>.)' does not match opening parenthesis '(?P<opening>.)'",
        explanations=(
            ExplanationText(
                "unmatched",
                what="The closing `{bracket}{closing}` does not match an opening bracket.",
                why="Brackets close in the reverse order in which they open, each with its own kind.",
                hint="Count the brackets of this line from the left.",
                fix="Remove the extra bracket, or add the missing one.",
                example="print(1))",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"unterminated (?:f-)?(?:string|triple-quoted string|triple-quoted f-string) literal|EOL while scanning|EOF while scanning",
        explanations=(
            ExplanationText(
                "unterminated_text",
                what="A string is not closed.",
                why="It must end with the same quotation mark, on the same line unless it is triple-quoted.",
                hint="Does the string contain the same quotation mark?",
                fix="Close it, or use the other kind of quotation mark around it.",
                example="name = 'Ada",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"expected ':'",
        explanations=(
            ExplanationText(
                "expected_colon",
                what="A colon is missing.",
                why=(
                    "Lines with `if`, `else`, `for`, `while`, `def`, `class`, `try` and `with` end with a "
                    "colon."
                ),
                hint="Where does the condition end?",
                fix="Put a `:` at the end of the line.",
                example="if True\n    pass",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"Maybe you meant '==' or ':=' instead of '='|cannot assign to (?P<what>comparison|expression|literal|function call)",
        explanations=(
            ExplanationText(
                "assign_for_compare",
                what="There is a single `=` where Python cannot assign a value.",
                why="`=` assigns a value to a name; `==` tests whether two values are equal.",
                hint="Do you want to compare or to assign?",
                fix="Write `==` to compare. To assign, put the name on the left.",
                example="x = 1\nif x = 1:\n    pass",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"Perhaps you forgot a comma",
        explanations=(
            ExplanationText(
                "comma",
                what="There is nothing between two values.",
                why=(
                    "Separate the items of a list or the arguments of a call with commas, and other values "
                    "with an operator."
                ),
                hint="What belongs between the two?",
                fix="Add a comma, an operator or a quotation mark.",
                example="print(1 2)",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"Missing parentheses in call to '(?P<name>\w+)'",
        explanations=(
            ExplanationText(
                "print_statement",
                what="`{name}` is a function, but its parentheses are missing.",
                why="It was a statement without parentheses in Python 2; Python 3 requires them.",
                fix="Write `{name}(…)`.",
                example="print 'hello'",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError",),
        r"'(?P<word>return|yield|await|break|continue)' (?:outside|not properly in)(?: async)? (?P<place>function|loop)",
        explanations=(
            ExplanationText(
                "outside_function",
                what="`{word}` is outside of a {place}.",
                why="The line is not indented as far as the {place} it should belong to.",
                hint="Which {place} does it belong to?",
                fix="Indent it; in a cell, write only the value on the last line.",
                example="return 1",
            ),
        ),
    ),
    FailurePattern(
        ("IndentationError",),
        r"expected an indented block after (?P<what>.+) on line (?P<line>\d+)",
        explanations=(
            ExplanationText(
                "block_expected",
                what="The {what} in line {line} needs an indented block.",
                why="Indentation marks the block that belongs to it, which needs at least one line.",
                hint="What should the block do?",
                fix="Indent the line, or write `pass` for an empty block.",
                example="def f():\nreturn 1",
            ),
        ),
    ),
    FailurePattern(
        ("IndentationError",),
        r"unexpected indent",
        explanations=(
            ExplanationText(
                "unexpected_indent",
                what="The line is indented further than the lines around it.",
                why="Only a line that ends with a colon starts an indented block.",
                hint="Which block does the line belong to?",
                fix="Remove the spaces, or find the line with the missing colon.",
                example="a = 1\n  b = 2",
            ),
        ),
    ),
    FailurePattern(
        ("IndentationError",),
        r"unindent does not match any outer indentation level",
        explanations=(
            ExplanationText(
                "unindent",
                what="The indentation of this line matches no block above.",
                why="All lines of a block start at the same column.",
                hint="Which line above does it belong to?",
                fix="Indent it exactly as far as that line.",
                example="def f():\n    a = 1\n  b = 2",
            ),
        ),
    ),
    FailurePattern(
        ("TabError",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "tabs",
                what="The indentation mixes tabs and spaces.",
                why="They look the same, but Python treats them differently.",
                fix="Use four spaces everywhere; most editors can convert tabs.",
                example="if True:\n\ta = 1\n        b = 2",
            ),
        ),
    ),
    FailurePattern(
        ("SyntaxError", "IndentationError"),
        r"^(?P<what>.*?)(?: \(.*, line \d+\))?$",
        explanations=(
            ExplanationText(
                "syntax",
                what="Python cannot parse this line: {what}.",
                why=(
                    "The mistake is at that position or just before it: often a bracket, a quotation mark, "
                    "a comma or an operator."
                ),
                hint="Read the line character by character, then the line above it.",
                fix="Shorten the line until Python can parse it, then put the rest back.",
                example="x = = 2",
            ),
        ),
    ),
)

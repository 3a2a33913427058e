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
                what="A `{bracket}` is opened and never closed.",
                why="Python read on to the end of the code and found no bracket to match it.",
                hint="Where should the bracket end?",
                fix="Close it; an editor marks the partner of the bracket at the cursor.",
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
                what="A `{bracket}{closing}` closes something that was not opened so.",
                why="Brackets close in the reverse order in which they were opened, each by its own kind.",
                hint="Count the brackets of this line from the left.",
                fix="Take away the one that is too many, or add the one that is missing.",
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
                what="A text begins with a quotation mark and does not end.",
                why="It must end with the same mark, in the same line unless there are three of them.",
                hint="Is there a mark of the same kind inside of the text?",
                fix="End it, or use the other kind of mark around it.",
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
                why="`if`, `else`, `for`, `while`, `def`, `class`, `try` and `with` lines end in one.",
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
                what="There is a single `=` where Python cannot store anything.",
                why="`=` gives a name a value; `==` asks whether two values are equal.",
                hint="Is it a question or a storing?",
                fix="Write `==` to compare. To store, the name comes on the left.",
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
                what="Two values stand side by side with nothing between them.",
                why="Items of a list or of a call are separated by commas, other values by an operator.",
                hint="What belongs between the two?",
                fix="Put a comma, an operator or a quotation mark there.",
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
                what="`{name}` is a function, and its brackets are missing.",
                why="In Python 2 it was written without them; that was given up in 2008.",
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
                what="`{word}` stands outside of a {place}.",
                why="The line is not indented as far as the {place} it should belong to.",
                hint="To which {place} does it belong?",
                fix="Indent it, or, in a cell, write the value alone in the last line.",
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
                what="After the {what} in line {line}, an indented line must follow.",
                why="Indentation says what belongs to it, and there must be at least one line.",
                hint="What should be done there?",
                fix="Indent the line, or write `pass` for nothing yet.",
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
                what="The line is indented further than the ones around it.",
                why="Only after a line that ends in a colon does the code go in.",
                hint="To which block does the line belong?",
                fix="Take the spaces away, or find the line that lost its colon.",
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
                what="The line comes back to a depth that no line above has.",
                why="All lines of one block begin at the same column.",
                hint="Which line above does it belong to?",
                fix="Indent it exactly as far as that one.",
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
                what="Tabs and spaces are mixed in the indentation.",
                why="They can look alike and are not.",
                fix="Use four spaces everywhere; an editor can convert them.",
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
                what="Python cannot read this line: {what}.",
                why="The mistake is at the place it names, or just before it: often a bracket, a quotation mark, a comma or an operator.",
                hint="Read the line aloud, sign by sign, then the line above it.",
                fix="Make the line shorter until it can be read, then put the rest back.",
                example="x = = 2",
            ),
        ),
    ),
)

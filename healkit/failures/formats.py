"""JSON and dates."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("JSONDecodeError",),
        r"Expecting value: line 1 column 1 \(char 0\)",
        explanations=(
            ExplanationText(
                "json_empty",
                what="There is no JSON at the very beginning of the text.",
                why="The text is empty, or begins with something else: an error page, a message, a quotation mark of the wrong kind.",
                hint="What do the first characters look like? Print `repr(text[:80])`.",
                fix="Find out why the text is not what was expected, before it is read.",
                example="import json\njson.loads('')",
            ),
        ),
    ),
    FailurePattern(
        ("JSONDecodeError",),
        r"(?P<what>.+): line (?P<line>\d+) column (?P<column>\d+)",
        explanations=(
            ExplanationText(
                "json",
                what="The text stops being JSON in line {line}, column {column}: {what}.",
                why="JSON is stricter than Python: double quotes only, no comma after the last item, no comments, `true` and `null`.",
                hint="What stands right before that place?",
                fix="Mend the text; what Python printed is read with `ast.literal_eval`.",
                example="import json\njson.loads(\"{'a': 1}\")",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError",),
        r"Object of type (?P<kind>\w+) is not JSON serializable",
        explanations=(
            ExplanationText(
                "not_json",
                what="JSON has no way to write a `{kind}`.",
                why="JSON knows text, numbers, true and false, null, lists and dicts with text as keys.",
                hint="What would the reader of the JSON want to see in its place?",
                fix="Convert it first: `list(…)`, `str(…)`, `.isoformat()`, `.item()`, `.to_dict()`.",
                example="import json\njson.dumps({1, 2})",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"time data (?P<text>.+?) does not match format (?P<format>'[^']*')|Invalid isoformat string: (?P<iso>.+)",
        explanations=(
            ExplanationText(
                "time_format",
                what="{text}{iso} is not written in the expected form {format}.",
                why="Every sign of the form must be matched: `%d` a day, `%m` a month, `%Y` a year of four digits, `%H:%M` a time.",
                hint="How does the text differ from the form, sign by sign?",
                fix="Change the form to what the data really look like.",
                example="from datetime import datetime\ndatetime.strptime('3.5.2024', '%Y-%m-%d')",
            ),
        ),
    ),
)

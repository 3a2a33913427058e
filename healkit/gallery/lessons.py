"""Lessons of the gallery, in the order of a class."""

from __future__ import annotations

from healkit.gallery.raising_lessons import RAISING
from healkit.gallery.samples import Lesson, object_schema

#: Mistakes that raise nothing: only an example of what is right shows them.
_SILENT: tuple[Lesson, ...] = (
    Lesson(
        name="sum_to",
        file="broken/sum_to.py",
        title="Off by one",
        mistake="`range(1, n)` stops before n.",
        question="Which is the last number that `range(1, 4)` gives?",
        failing={"n": 10},
        wrong_value=45,
        examples=(
            {"arguments": {"n": 10}, "result": 55},
            {"arguments": {"n": 1}, "result": 1},
            {"arguments": {"n": 0}, "result": 0},
        ),
    ),
    Lesson(
        name="can_vote",
        file="broken/can_vote.py",
        title="The wrong comparison",
        mistake='"From 18 on" includes 18: `>=`, not `>`.',
        question="For which single age is the result wrong?",
        failing={"age": 18},
        wrong_value=False,
        examples=(
            {"arguments": {"age": 18}, "result": True},
            {"arguments": {"age": 17}, "result": False},
            {"arguments": {"age": 40}, "result": True},
        ),
    ),
    Lesson(
        name="to_celsius",
        file="broken/to_celsius.py",
        title="Missing parentheses",
        mistake="Multiplication comes before subtraction: put the subtraction of 32 in parentheses.",
        question="In which order does Python calculate `a - b * c`?",
        description="Convert a temperature from Fahrenheit to Celsius, rounded to one decimal.",
        input_schema=object_schema(fahrenheit={"type": "number"}),
        failing={"fahrenheit": 212},
        wrong_value=194.2,
        examples=(
            {"arguments": {"fahrenheit": 212}, "result": 100.0},
            {"arguments": {"fahrenheit": 32}, "result": 0.0},
        ),
    ),
    Lesson(
        name="all_positive",
        file="broken/all_positive.py",
        title="A return too early",
        mistake="Both branches return, so only the first number is checked.",
        question="How often does the loop run for a list of three numbers?",
        failing={"numbers": [1, -1]},
        wrong_value=True,
        examples=(
            {"arguments": {"numbers": [1, -1]}, "result": False},
            {"arguments": {"numbers": [1, 2]}, "result": True},
            {"arguments": {"numbers": []}, "result": True},
        ),
    ),
    Lesson(
        name="clean_phone",
        file="broken/clean_phone.py",
        title="An unused result",
        mistake="Strings never change: `replace` returns a new one, and the code does not use it.",
        question='What is `number` after `number.replace("-", "")`?',
        failing={"number": "555-01 23"},
        wrong_value="555-01 23",
        examples=(
            {"arguments": {"number": "555-01 23"}, "result": "5550123"},
            {"arguments": {"number": "5550123"}, "result": "5550123"},
        ),
    ),
    Lesson(
        name="drop_negatives",
        file="broken/drop_negatives.py",
        title="A list changed during iteration",
        mistake="Removing an item moves the next one into its place, and the loop skips it.",
        question="After -1 was removed, which item is at the index that the loop visits next?",
        failing={"numbers": [3, -1, -2, 4]},
        wrong_value=[3, -2, 4],
        examples=(
            {"arguments": {"numbers": [3, -1, -2, 4]}, "result": [3, 4]},
            {"arguments": {"numbers": [0, 5]}, "result": [0, 5]},
        ),
    ),
    Lesson(
        name="pack_baskets",
        file="broken/pack_baskets.py",
        title="A mutable default",
        mistake="The default list is made once, when the function is defined, and all calls share it.",
        question="How many lists does this program make for two items?",
        failing={"items": ["apple", "pear"]},
        wrong_value=[["apple", "pear"], ["apple", "pear"]],
        examples=(
            {"arguments": {"items": ["apple", "pear"]}, "result": [["apple"], ["pear"]]},
            {"arguments": {"items": ["fig"]}, "result": [["fig"]]},
        ),
    ),
    Lesson(
        name="is_palindrome",
        file="broken/is_palindrome.py",
        title="`is` instead of `==`",
        mistake="`is` asks whether both are the same object; `==` asks whether they are equal.",
        question="Are two coins of the same value the same coin?",
        failing={"text": "level"},
        wrong_value=False,
        examples=(
            {"arguments": {"text": "level"}, "result": True},
            {"arguments": {"text": "lever"}, "result": False},
        ),
    ),
    Lesson(
        name="adds_up",
        file="broken/adds_up.py",
        title="Equality of floats",
        mistake="0.1 has no exact binary form: check that the amounts differ by less than half a cent, not `==`.",
        question="What does Python print for 0.1 + 0.2?",
        failing={"parts": [0.1, 0.2], "total": 0.3},
        wrong_value=False,
        examples=(
            {"arguments": {"parts": [0.1, 0.2], "total": 0.3}, "result": True},
            {"arguments": {"parts": [1.5, 2.5], "total": 4}, "result": True},
            {"arguments": {"parts": [1.5, 2.5], "total": 4.01}, "result": False},
        ),
    ),
    Lesson(
        name="seat_holder",
        file="broken/seat_holder.py",
        title="Keys that came from JSON",
        mistake='In JSON all keys are strings, so the number 12 never equals the key "12".',
        question="Of which type are the keys of `plan`, and of which type is `seat`?",
        description='Return the name of the person who sits in a seat, or "free".',
        input_schema=object_schema(plan={"type": "object"}, seat={"type": "integer"}),
        failing={"plan": {"12": "Ada", "14": "Bo"}, "seat": 12},
        wrong_value="free",
        examples=(
            {"arguments": {"plan": {"12": "Ada", "14": "Bo"}, "seat": 12}, "result": "Ada"},
            {"arguments": {"plan": {"12": "Ada", "14": "Bo"}, "seat": 13}, "result": "free"},
        ),
    ),
    Lesson(
        name="times_table",
        file="broken/times_table.py",
        title="Late binding in a loop",
        mistake="Each lambda looks up `factor` when it is called, and by then it has its last value.",
        question="When is `factor` read: when the lambda is made, or when it is called?",
        failing={"n": 7, "factors": [1, 2, 3]},
        wrong_value=[21, 21, 21],
        examples=(
            {"arguments": {"n": 7, "factors": [1, 2, 3]}, "result": [7, 14, 21]},
            {"arguments": {"n": 2, "factors": [5]}, "result": [10]},
        ),
    ),
    Lesson(
        name="unreturned_sales",
        file="broken/unreturned_sales.sql",
        title="NULL compared with `=` (SQL)",
        mistake="In SQL nothing equals NULL, not even NULL itself: use `IS NULL`.",
        question="If two things are both unknown, are they equal?",
        description="Units sold and not returned, by product, for one region, from the table sample_sales.",
        input_schema=object_schema(region={"type": "string"}),
        failing={"region": "North"},
        wrong_value={"columns": ["product", "units"], "rows": [], "row_count": 0, "truncated": False},
        examples=(
            {
                "arguments": {"region": "North"},
                "result": {
                    "columns": ["product", "units"],
                    "rows": [["backpack", 18], ["globe", 3], ["lamp", 21], ["notebook", 33], ["pen", 50]],
                    "row_count": 5,
                    "truncated": False,
                },
            },
        ),
    ),
)

LESSONS: tuple[Lesson, ...] = RAISING + _SILENT

_BY_NAME = {lesson.name: lesson for lesson in LESSONS}


def lesson(name: str) -> Lesson:
    """Return the lesson of that name; raises `KeyError` if there is none."""
    return _BY_NAME[name]

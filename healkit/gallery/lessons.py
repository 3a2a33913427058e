"""Lessons of the gallery, in the order of a class."""

from __future__ import annotations

from healkit.gallery.samples import Lesson, object_schema

_SALES = [
    {"region": "North", "units": 4},
    {"region": "South", "units": 9},
    {"region": "North", "units": 6},
]

#: Mistakes that raise an exception: the traceback names the line.
_RAISING: tuple[Lesson, ...] = (
    Lesson(
        name="fibonacci",
        file="broken/fibonacci.py",
        title="Division by zero",
        mistake="The first value divided by is the 0 that starts the sequence; nobody needs the quotient.",
        question="What is `previous` the very first time the loop runs?",
        failing={"n": 10},
        ename="ZeroDivisionError",
        examples=(
            {"arguments": {"n": 10}, "result": 55},
            {"arguments": {"n": 1}, "result": 1},
            {"arguments": {"n": 0}, "result": 0},
        ),
    ),
    Lesson(
        name="longest_word",
        file="broken/longest_word.py",
        title="A misspelt name",
        mistake="`longets` was never given a value: it is `longest`, misspelt.",
        question="Where does the name in the error message get its value?",
        failing={"text": "a small example"},
        ename="NameError",
        examples=(
            {"arguments": {"text": "a small example"}, "result": "example"},
            {"arguments": {"text": "one two six"}, "result": "one"},
            {"arguments": {"text": ""}, "result": ""},
        ),
    ),
    Lesson(
        name="birthday_card",
        file="broken/birthday_card.py",
        title="Text plus a number",
        mistake="`+` joins two texts or adds two numbers, never one of each: the age must become text first.",
        question='What should "1" + 1 be: 2, or "11"? How could Python know?',
        failing={"name": "Ada", "age": 12},
        ename="TypeError",
        examples=(
            {"arguments": {"name": "Ada", "age": 12}, "result": "Happy birthday, Ada! You are 12 now."},
            {"arguments": {"name": "Bo", "age": 1}, "result": "Happy birthday, Bo! You are 1 now."},
        ),
    ),
    Lesson(
        name="step_sizes",
        file="broken/step_sizes.py",
        title="Index past the end",
        mistake="The last value has no right neighbour, so the loop must stop one index earlier.",
        question="For three values, which indexes does `i + 1` take?",
        failing={"values": [1, 4, 9]},
        ename="IndexError",
        examples=(
            {"arguments": {"values": [1, 4, 9]}, "result": [3, 5]},
            {"arguments": {"values": [5]}, "result": []},
            {"arguments": {"values": []}, "result": []},
        ),
    ),
    Lesson(
        name="middle_item",
        file="broken/middle_item.py",
        title="A fraction as an index",
        mistake="`/` always gives a float, and a list has no item number 1.5: whole division is `//`.",
        question="What are 4 / 2 and 4 // 2, and of which type is each?",
        failing={"items": ["a", "b", "c"]},
        ename="TypeError",
        examples=(
            {"arguments": {"items": ["a", "b", "c"]}, "result": "b"},
            {"arguments": {"items": [1, 2, 3, 4]}, "result": 3},
        ),
    ),
    Lesson(
        name="count_votes",
        file="broken/count_votes.py",
        title="A key that is not there yet",
        mistake="`+=` reads before it writes, and at a name's first vote there is nothing to read.",
        question="What is in `votes` when the first ballot is counted?",
        failing={"ballots": ["ada", "bo", "ada"]},
        ename="KeyError",
        examples=(
            {"arguments": {"ballots": ["ada", "bo", "ada"]}, "result": {"ada": 2, "bo": 1}},
            {"arguments": {"ballots": []}, "result": {}},
        ),
    ),
    Lesson(
        name="find_email",
        file="broken/find_email.py",
        title="None has no attributes",
        mistake="`re.search` returns None when nothing matches, and None has no `group`.",
        question="What does `re.search` return when it finds nothing?",
        failing={"text": "no address in here"},
        ename="AttributeError",
        examples=(
            {"arguments": {"text": "no address in here"}, "result": ""},
            {"arguments": {"text": "write to ada@example.org today"}, "result": "ada@example.org"},
        ),
    ),
    Lesson(
        name="top_three",
        file="broken/top_three.py",
        title="A method that returns None",
        mistake="`list.sort` sorts the list itself and returns None; `sorted` returns a sorted copy.",
        question="What does `scores.sort()` give back, and what has changed afterwards?",
        description="Return the three highest scores, highest first.",
        input_schema=object_schema(scores={"type": "array", "items": {"type": "number"}}),
        failing={"scores": [7, 3, 9, 5]},
        ename="TypeError",
        examples=(
            {"arguments": {"scores": [7, 3, 9, 5]}, "result": [9, 7, 5]},
            {"arguments": {"scores": [2, 2]}, "result": [2, 2]},
        ),
    ),
    Lesson(
        name="factorial",
        file="broken/factorial.py",
        title="Recursion without an end",
        mistake="Nothing stops the recursion: there is no case that answers without asking again.",
        question="Which `n` should be answered without calling `factorial` again?",
        failing={"n": 5},
        ename="RecursionError",
        examples=(
            {"arguments": {"n": 5}, "result": 120},
            {"arguments": {"n": 1}, "result": 1},
            {"arguments": {"n": 0}, "result": 1},
        ),
    ),
    Lesson(
        name="read_settings",
        file="broken/read_settings.py",
        title="Unpacking too many values",
        mistake="A value may itself hold a `=`; the line must be split at the first one only.",
        question="How many pieces does the line that fails fall into, and why?",
        failing={"lines": ["name=demo", "filter=a=b"]},
        ename="ValueError",
        examples=(
            {
                "arguments": {"lines": ["name=demo", "filter=a=b"]},
                "result": {"name": "demo", "filter": "a=b"},
            },
            {"arguments": {"lines": ["size = 3"]}, "result": {"size": "3"}},
        ),
    ),
    Lesson(
        name="distinct_words",
        file="broken/distinct_words.py",
        title="A shadowed builtin",
        mistake="The variable called `list` hides the builtin of that name, and then it is called.",
        question="What does the name `list` stand for in the last line?",
        failing={"words": ["pear", "fig", "pear"]},
        ename="TypeError",
        examples=(
            {"arguments": {"words": ["pear", "fig", "pear"]}, "result": ["fig", "pear"]},
            {"arguments": {"words": []}, "result": []},
        ),
    ),
    Lesson(
        name="price_with_tax",
        file="broken/price_with_tax.py",
        title="A local name without a value",
        mistake="One assignment in a function makes the name local everywhere in it: the global is hidden.",
        question="Is `TAX_PERCENT` in the last line the one from the top of the file?",
        failing={"cents": 1000},
        ename="UnboundLocalError",
        examples=(
            {"arguments": {"cents": 1000}, "result": 1200},
            {"arguments": {"cents": 1000, "reduced": True}, "result": 1100},
        ),
    ),
    Lesson(
        name="busiest_region",
        file="broken/busiest_region.py",
        title="A column that does not exist",
        mistake="The column is called `units`, not `unit`.",
        question="Which columns does the table have? How would you list them?",
        failing={"sales": _SALES},
        ename="KeyError",
        examples=(
            {"arguments": {"sales": _SALES}, "result": "North"},
            {"arguments": {"sales": [{"region": "East", "units": 1}]}, "result": "East"},
        ),
    ),
)

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
        question="Which single age is answered wrongly?",
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
        mistake="Multiplication binds more tightly than subtraction: 32 must be taken off first.",
        question="In which order does Python work out `a - b * c`?",
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
        mistake="Both branches return, so only the first number is ever looked at.",
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
        title="A result thrown away",
        mistake="Texts never change: `replace` returns a new one, and nobody keeps it.",
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
        title="A list changed while it is read",
        mistake="Removing an item moves the next one into its place, and the loop steps over it.",
        question="After -1 was removed, what stands at the place that the loop visits next?",
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
        mistake="The default list is made once, with the function, and every call shares it.",
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
        mistake="0.1 has no exact binary form: compare money within less than half a cent, never with `==`.",
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
        mistake='In JSON every key is text, so the number 12 never equals the key "12".',
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
        title="Functions that bind too late",
        mistake="Each lambda looks `factor` up when it is called, and by then the loop is at the last one.",
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
        title="NULL equals nothing (SQL)",
        mistake="In SQL nothing equals NULL, not even NULL: the test is `IS NULL`.",
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

LESSONS: tuple[Lesson, ...] = _RAISING + _SILENT

_BY_NAME = {lesson.name: lesson for lesson in LESSONS}


def lesson(name: str) -> Lesson:
    """Return the lesson of that name; raises `KeyError` if there is none."""
    return _BY_NAME[name]

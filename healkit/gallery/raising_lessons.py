"""Lessons whose mistake raises an exception."""

from __future__ import annotations

from healkit.gallery.samples import Lesson, object_schema

_SALES = [
    {"region": "North", "units": 4},
    {"region": "South", "units": 9},
    {"region": "North", "units": 6},
]

#: Mistakes that raise an exception: the traceback names the line.
RAISING: tuple[Lesson, ...] = (
    Lesson(
        name="fibonacci",
        file="broken/fibonacci.py",
        title="Division by zero",
        mistake="The sequence starts with 0, so the code divides by zero; the quotient is not needed.",
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
        mistake="`longets` has no value: it is a misspelling of `longest`.",
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
        title="A string plus a number",
        mistake="`+` joins two strings or adds two numbers, but never mixes them: convert the age to a string first.",
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
        mistake="The last value has no neighbour on its right, so the loop must stop one index earlier.",
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
        title="A float as an index",
        mistake="`/` always returns a float, and an index must be an integer: use `//`.",
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
        title="A key that does not exist yet",
        mistake="`+=` reads the old value first, and there is none on the first vote for a name.",
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
        title="Endless recursion",
        mistake="Nothing stops the recursion: no case returns without another recursive call.",
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
        mistake="A value may contain `=` too: split the line at the first one only.",
        question="How many pieces does `split` make of the failing line, and why?",
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
        mistake="The variable `list` hides the built-in function of that name, and is then called.",
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
        mistake="An assignment anywhere in a function makes the name local in all of it and hides the global.",
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

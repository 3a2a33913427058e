"""Sentences for facts of columns.

Each is for one `about` of `healkit.facts`, as in `observed_tables`.
"""

from __future__ import annotations

from healkit.failures.observed_tables import said
from healkit.failures.pattern import FailurePattern

_VALUES = (
    said(
        "truth_of_many",
        "{part} has {size}, and {asker} needs a single True or False.",
        why="pandas and numpy compare each value by itself.",
        hint="Should all of the values be true, or any of them?",
        fix="Write `.all()` or `.any()` after it.",
    ),
    said(
        "truth_of_both",
        "{part} has {size}, and {asker} needs a single True or False.",
        why="{asker} joins two single conditions; it does not compare row by row.",
        hint="Do you want to join the conditions row by row?",
        fix="Write {sign}, with parentheses around each condition.",
    ),
    said(
        "truth_of_chain",
        "{part} is read as one chain of comparisons.",
        why="`&` and `|` bind more tightly than `<` and `>`, and a chain asks a whole column for one True or False.",
        hint="Which two conditions do you mean?",
        fix="Put parentheses around each: {joined}.",
    ),
    said(
        "gaps",
        "{owner} has no value in {count} of {rows:row}; the first is row {row}.",
        why="A missing value is `nan`, a float; no integer represents it.",
        hint="What should replace a missing value?",
        fix="Fill the gaps with `.fillna(…)`, remove them with `.dropna()`, or use the type `'Int64'`.",
    ),
    said(
        "gaps_in_columns",
        "Values are missing in {columns} of {owner}.",
        why="A missing value is `nan`, a float; no integer represents it.",
        hint="What should replace a missing value?",
        fix="Fill the gaps with `.fillna(…)`, remove them with `.dropna()`, or use the type `'Int64'`.",
    ),
    said(
        "infinite",
        "Row {row} of {owner} is {value}, which is not an integer.",
        hint="Was something divided by zero before?",
        fix="Replace it with `.replace(…)` first.",
    ),
    said(
        "row_not_number",
        "Row {row} of {owner} is {value}, which is not a number{count}.",
        why="{reason}",
        hint="What should such a value count as?",
        fix="Clean the text first, or make such values missing: `pd.to_numeric(…, errors='coerce')`.",
    ),
    said(
        "row_other_form",
        "Row {row} of {owner} is {value}, which does not match the format {form}{count}.",
        why="pandas took that format from the first value, {first}.",
        hint="Does this column hold dates in several formats?",
        fix="Use `format='mixed'` if each can be read by itself, or `errors='coerce'` to make the others missing.",
    ),
    said(
        "row_not_of_form",
        "Row {row} of {owner} is {value}, which does not match the format {form}{count}.",
        hint="How is the date written there?",
        fix="Change the format, or use `errors='coerce'` to make such values missing.",
    ),
    said(
        "no_such_day",
        "Row {row} of {owner} is {value}: there is no such day{count}.",
        hint="Is it a typing error, or are day and month swapped?",
        fix="Correct the value, or use `errors='coerce'` to make it missing.",
    ),
    said(
        "accessor_of_other",
        "{owner} has the type {dtype}, with values such as {value}; {accessor} needs {needs}.",
        hint="Should the column have another type?",
        fix="Convert it first, with `.astype(…)`.",
    ),
    said(
        "dt_of_text",
        "{owner} holds text such as {value}, and `.dt` needs times.",
        why="Dates that were read from a file are text.",
        fix="Convert it first: {instead}.",
    ),
    said(
        "zones",
        "{with} has the time zone {zone}, and {without} has none.",
        why="Without a time zone, it is not known which moment is meant.",
        hint="Which time zone is {without} in?",
        fix="If it is that zone: {instead}.",
    ),
    said(
        "calculated_text",
        "{owner} is a column of text ({dtype}), with values such as {value}.",
        why="This calculation needs numbers.",
        hint="Should the column hold numbers?",
        fix="If so, convert it with `pd.to_numeric(…)`.",
    ),
    said(
        "calculated_columns",
        "{columns} of {owner} holds text, such as {value}.",
        why="The calculation is for all columns but the keys, and it needs numbers.",
        hint="Which columns do you want it for?",
        fix="Choose them before the call, or use `numeric_only=True`.",
    ),
    said(
        "operand_column",
        "{owner} is a column of text ({dtype}), with values such as {value}.",
        why="This operation with {other} needs numbers.",
        hint="Should the column hold numbers?",
        fix="Convert it first: {instead}.",
    ),
    said(
        "wrong_fill",
        "{owner} has the type {dtype}, and {value} is not a value of this type.",
        why="All values of a column have its type.",
        hint="What should the gaps count as?",
        fix="Fill with a value of that type, or convert the column first.",
    ),
    said(
        "new_category",
        "{value} is not one of the categories of {owner}, which are {known}.",
        why="A column of categories takes only these.",
        hint="Is it a typing error, or a new category?",
        fix="For a new one: {instead}.",
    ),
    said(
        "read_only",
        "{owner} is a read-only array.",
        why="It shares its memory with a protected object, such as a column of pandas.",
        hint="Do you want to change the table, or only these values?",
        fix="For the values only, take a copy: {instead}.",
    ),
    said(
        "chained",
        "{copy} is a copy; a value set in it does not reach {owner}.",
        why="Two pairs of brackets are two steps: the first makes a new table.",
        fix="Do it in one step: {instead}.",
    ),
    said(
        "attribute_of_gap",
        "{owner} is `nan`, a missing value, and has no {wanted}.",
        why="A missing value in a column of text is a float.",
        hint="What should be done with a missing value?",
        fix="Fill the gaps with `.fillna('')` first, or use the methods of `.str`, which skip them.",
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (FailurePattern((), explanations=_VALUES),)

"""Sentences for what was read off tables: pandas.

Each is for one `about` of `healkit.facts`; its places to fill in are that observer's facts. Its example is in
`tests/failures/notebook_failures.toml`.
"""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern


def said(about: str, what: str, *, why: str = "", hint: str = "", fix: str = "") -> ExplanationText:
    """Return the sentences for one `about`."""
    return ExplanationText(about, what, why, hint, fix, needs="facts")


_LABELS = (
    said(
        "column_differs",
        "{owner} has no column {wanted}. It has {found}, {how}.",
        why="A name must be the same in every character, and of the same type.",
        hint="Where did the column get its name?",
        fix="Write {found}, or clean the names once: strip white space, and use capitals consistently.",
    ),
    said(
        "column_near",
        "{owner} has no column {wanted}. The most similar one is {found}.",
        why="Its columns are {known}.",
        hint="Which column do you mean?",
        fix="If you mean {found}, write that.",
    ),
    said(
        "column_missing",
        "{owner} has no column {wanted}.",
        why="Its columns are {known}.",
        hint="Which of them holds what you need? Or should an earlier line have made the column?",
    ),
    said(
        "no_columns",
        "{owner} has no column {wanted}: it has no columns at all.",
        hint="Which line should have filled the table?",
    ),
    said(
        "column_is_index",
        "{wanted} is the index of {owner}, not one of its columns.",
        why="`set_index` and `groupby` make a column the index. Its columns are {known}.",
        hint="Do you still need the index?",
        fix="Use `.index`, or make it a column again with `.reset_index()`.",
    ),
    said(
        "columns_as_tuple",
        "{owner} has no single column named {wanted}; it has the columns {columns}.",
        why="Names with a comma between them in single brackets are one label: a tuple.",
        hint="Do you want one column or several?",
        fix="Put a list into the brackets: {instead}.",
    ),
    said(
        "one_column",
        "{owner} has no column {wanted}. All its names are in one column: {column}.",
        why="The text was split at another separator than the one that it has.",
        hint="Which character stands between the values of the file?",
        fix="Name the separator when you read the file: {separator}.",
    ),
    said(
        "row_differs",
        "{owner} has no label {wanted} in its index. It has {found}, {how}.",
        why="A label must match in every character and in its type.",
        hint="Which type should the labels have?",
        fix="Write {found}, or convert the index.",
    ),
    said(
        "row_near",
        "{owner} has no label {wanted} in its index. The most similar one is {found}.",
        why="Its labels are {known}.",
        hint="Which label do you mean?",
        fix="If you mean {found}, write that.",
    ),
    said(
        "row_missing",
        "{owner} has no label {wanted} in its index.",
        why="Its labels are {known}.",
        hint="Should the label be there, or is a missing one normal?",
        fix="Where a missing label is normal, use `.reindex(…)`, which gives it a missing value.",
    ),
    said(
        "no_rows",
        "{owner} has no label {wanted} in its index: it has no rows.",
        hint="Which line removed them all?",
    ),
    said(
        "row_is_column",
        "{wanted} is a column of {owner}, but the line looks it up in the row labels.",
        why="`.loc` takes the labels of rows first. The labels of {owner} are {known}.",
        hint="Do you want a column or a row?",
        fix="For the column, use single brackets without `.loc`, or put `:, ` before its name.",
    ),
    said(
        "dropped_column",
        "{wanted} is a column of {owner}, but `drop` looks it up in the row labels.",
        why="Without `columns=`, `drop` removes rows.",
        hint="Do you want to remove a column or rows?",
        fix="Write `drop(columns={wanted:bare})`.",
    ),
    said(
        "label_for_position",
        "{owner} has no label {wanted} in its index. It has {count} rows, with the labels {known}.",
        why="Brackets look for a label, not for a position. A filter keeps the labels that the rows had before.",
        hint="Do you want the row with that label, or the one at that position?",
        fix="For the position, write {instead}.",
    ),
    said(
        "attribute_column",
        "{owner} has no column or method {wanted}. It has the column {found}, {how}.",
        why="A column can be read as an attribute only under its own name.",
        hint="Which column do you mean?",
        fix="If you mean {found}, write that.",
    ),
    said(
        "no_attribute",
        "{owner} is {kind}, which has no column and no method {wanted}.",
        hint="Is it a table at this line that you expect there?",
    ),
    said(
        "method_gone",
        "{wanted} is not a method of a DataFrame any more, so {owner} has none.",
        why="An earlier pandas had it; it was removed.",
        hint="Which version of pandas was the code written for?",
        fix="Use {instead}.",
    ),
    said(
        "position_past_end",
        "{owner} has {rows:row}, but the code asks for position {asked}.",
        why="Positions count from 0, so the last one is {last}.",
        hint="Where does the position come from?",
        fix="Use -1 for the last row, or check the number of rows first.",
    ),
    said(
        "position_of_none",
        "{owner} has no rows, so there is none at that position.",
        hint="Why is it empty here? Look at the filter that made it.",
        fix="Handle an empty table first: `if` its `.empty` is true.",
    ),
    said(
        "iloc_of_column",
        "{wanted} is a column of {owner}, and `iloc` takes positions only.",
        why="`iloc` counts rows and columns from 0; names go into plain brackets or `loc`.",
        hint="Do you want the column of that name?",
        fix="Write {instead}.",
    ),
    said(
        "iloc_of_label",
        "`iloc` takes positions only, and {wanted} is a label.",
        hint="Do you want a position or a label?",
        fix="Use `.loc[…]` for labels.",
    ),
)

_JOINS = (
    said(
        "merge_key",
        "{owner} has no column {wanted} to merge by.",
        why="Its columns are {known}. `on=` needs a column that both tables have.",
        hint="Which of its columns means the same?",
        fix="If the column has another name there, use `left_on=` and `right_on=`.",
    ),
    said(
        "merge_nothing_common",
        "{left} and {right} have no column of the same name.",
        why="{left} has {left_columns}; {right} has {right_columns}. Without `on=`, they are merged by equal names.",
        hint="Which column of one table corresponds to which column of the other?",
        fix="Name them with `left_on=` and `right_on=`.",
    ),
    said(
        "merge_key_types",
        "The column {wanted} is {left_type} in {left} and {right_type} in {right}.",
        why="The first values are {left_value} and {right_value}: values of these types are never equal.",
        hint="Which of the two types is right?",
        fix="Convert one of the two with `.astype(…)` before the merge.",
    ),
    said(
        "join_overlap",
        "{left} and {right} both have {columns}.",
        why="`join` matches the rows by their index and keeps all columns, so it needs two names for one that both have.",
        hint="Do you want to match the rows by {columns}?",
        fix="If so, use `.merge(…, on=…)`; else give `lsuffix=` and `rsuffix=`.",
    ),
    said(
        "concat_nothing",
        "There is nothing to concatenate: {given} is empty.",
        hint="Which line should have filled it? Did it find any files or rows?",
        fix="Handle the empty case before this line.",
    ),
    said(
        "concat_without_list",
        "`concat` got {tables} as separate arguments.",
        why="It takes one list of tables.",
        fix="Write {instead} in its brackets.",
    ),
    said(
        "pivot_duplicates",
        "{owner} has {times} rows with {index} {row} and {columns} {column}.",
        why="`pivot` has one cell for each pair, and there are several values for it.",
        hint="Should these rows be added up, or is one of them a mistake?",
        fix="Use `.pivot_table(…, aggfunc='sum')`, or remove the duplicates.",
    ),
    said(
        "labels_twice",
        "The {axis} of {owner} has {labels} more than once.",
        why="It is not clear which of the rows is meant.",
        hint="Are the duplicates right?",
        fix="Add them up with `.groupby(level=0)`, keep one of each, or call `.reset_index()`.",
    ),
    said(
        "column_length",
        "{owner} has {rows:row}, and {values} has {given:value}.",
        why="A column has one value for each row.",
        hint="Which rows do the values belong to?",
        fix="Give one value for each row, or a Series with the same index.",
    ),
    said(
        "column_lengths",
        "The columns have different lengths: {sizes}.",
        why="Each column of a table has one value for each row.",
        hint="Which values are missing?",
        fix="Fill the gaps with `None`.",
    ),
    said(
        "too_few_names",
        "{owner} has {has} {what}, and {given} names were given.",
        why="It has {known}. This assignment renames all of them at once.",
        hint="Which one has no new name?",
        fix="Give {has} names, or rename some with `.rename(…)`.",
    ),
    said(
        "only_scalars",
        "{given} has a single value for each of {keys}, so the number of rows is not known.",
        why="A table is made from columns: each key needs a list of values.",
        hint="Is it one row?",
        fix="For one row, put it into a list: {instead}.",
    ),
    said(
        "filter_length",
        "{filter} has {given:value}, and {owner} has {rows:row}.",
        why="A filter has one True or False for each row.",
        hint="Was it made from another table?",
        fix="Build the filter from the table that it filters.",
    ),
    said(
        "filter_index",
        "{filter} and {owner} have different indexes.",
        why="The filter has the labels {given}, and the table {labels}. pandas matches them by label.",
        hint="Was the filter made from another table, or before the index changed?",
        fix="Build the filter from the table that it filters, or pass its `.to_numpy()`.",
    ),
    said(
        "usecols_missing",
        "The file has no column {wanted}.",
        why="Its columns are {known}.",
        hint="Is a name misspelt, or has the file another separator?",
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (FailurePattern((), explanations=(*_LABELS, *_JOINS)),)

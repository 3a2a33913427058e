"""Tables and arrays: pandas and numpy."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

_FRAME = "import pandas as pd\nsales = pd.DataFrame({'region': ['N', 'S'], 'units': [1, 2]})\n"

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern((), r"\AColumn not found", kind="key"),  # pandas raises it as several types
    FailurePattern(
        ("KeyError",),
        r"Column not found: (?P<column>.+?)'?$|(?P<several>\[.*\]) not in index|None of \[Index\((?P<none>\[.*?\])",
        explanations=(
            ExplanationText(
                "column_near",
                what="The table has no column `{column}{several}{none}`.",
                why="It has one much like it: {near}. Names must be alike in every letter, spaces and capitals too.",
                hint="What does `table.columns` list?",
                fix="If {near} was meant, use that.",
                needs="near",
                example=_FRAME + "sales[['region', 'unit']]",
            ),
            ExplanationText(
                "column_known",
                what="The table has no column `{column}{several}{none}`.",
                why="Its columns are {known}. Names read from a file may carry spaces or another spelling.",
                hint="Which of them holds what is needed?",
                fix="Use one of them, or clean the names: `table.columns = table.columns.str.strip()`.",
                needs="known",
                example=_FRAME + "sales.groupby('region')['zzyzx'].sum()",
            ),
            ExplanationText(
                "column",
                what="The table has no column `{column}{several}{none}`.",
                why="Names must be alike in every letter, spaces and capitals too.",
                hint="What does `table.columns` list?",
                fix="Use one of those names.",
                example="import pandas as pd\npd.DataFrame({'a': [1]}).groupby('a')['b'].sum()",
            ),
        ),
    ),
    FailurePattern(
        ("IndexError",),
        r"single positional indexer is out-of-bounds|positional indexers are out-of-bounds|index (?P<index>\d+) is out of bounds for axis 0 with size 0",
        explanations=(
            ExplanationText(
                "iloc_end",
                what="The table has no row at that place.",
                why="`iloc` counts rows from 0. A filter may have left none.",
                hint="How many rows are there? `len(table)` says so.",
                fix="Test `table.empty` first, or take `table.head(1)`.",
                example=_FRAME + "sales[sales.units > 9].iloc[0]",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"attempt to get (?P<what>argmax|argmin) of an empty sequence|Encountered all NA values|zero-size array to reduction operation (?P<which>\w+)",
        explanations=(
            ExplanationText(
                "extreme_of_empty",
                what="There is no largest or smallest: there are no values.",
                why="A filter has left nothing, or every value is missing.",
                hint="Why is it empty here? Look at the table before this line.",
                fix="Handle the case with `if table.empty:`.",
                example="import pandas as pd\npd.Series([], dtype=float).idxmax()",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"The truth value of (?:a|an) (?P<kind>\w+)(?: with more than one element)? is ambiguous",
        explanations=(
            ExplanationText(
                "truth",
                what="A whole {kind} was asked whether it is true.",
                why="It has many values, some true and some not. `and`, `or`, `not` and `if` want one.",
                hint="Should all of them hold, or any?",
                fix="Write `&`, `|`, `~` with brackets around each condition, or `.any()` or `.all()`.",
                example=_FRAME + "if sales.units > 1:\n    pass",
            ),
        ),
    ),
    FailurePattern(
        ("MergeError",),
        r"No common columns to perform merge on",
        explanations=(
            ExplanationText(
                "merge_columns",
                what="The two tables have no column in common to be joined by.",
                why="Without `on=`, pandas joins by the columns that have the same name in both.",
                hint="Which column of the one means the same as which of the other?",
                fix="Name them: `left_on='…', right_on='…'`.",
                example=_FRAME + "sales.merge(pd.DataFrame({'area': ['N']}))",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"You are trying to merge on (?P<left>\w+) and (?P<right>\w+) columns",
        explanations=(
            ExplanationText(
                "merge_types",
                what="The column to join by is `{left}` in one table and `{right}` in the other.",
                why="The text `'12'` never equals the number `12`.",
                hint="Which of the two is right?",
                fix="Convert one: `table['id'] = table['id'].astype(str)`.",
                example="import pandas as pd\npd.DataFrame({'id': ['1']}).merge(pd.DataFrame({'id': [1]}), on='id')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"All arrays must be of the same length|Length of values \((?P<values>\d+)\) does not match length of index \((?P<rows>\d+)\)|arrays must all be same length",
        explanations=(
            ExplanationText(
                "lengths",
                what="The columns do not have the same length.",
                why="In a table, each column has one value for each row.",
                hint="Which one is shorter, and which rows does it lack?",
                fix="Fill the gaps with `None`, or join the tables by a key.",
                example=_FRAME + "sales['price'] = [1, 2, 3]",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"operands could not be broadcast together with shapes? (?P<shapes>.+)|shapes (?P<dot>.+?) not aligned|shape mismatch",
        explanations=(
            ExplanationText(
                "broadcast",
                what="The arrays' shapes do not fit together: {shapes}{dot}.",
                why="Shapes are compared from their ends; each pair must be equal, or one of the two 1.",
                hint="Which of the shapes surprises you?",
                fix="Use `.reshape(…)`, `.T`, or an axis of length 1: `array[:, None]`.",
                example="import numpy\nnumpy.zeros(3) + numpy.zeros(4)",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"cannot reshape array of size (?P<size>\d+) into shape (?P<shape>.+)",
        explanations=(
            ExplanationText(
                "reshape",
                what="An array of {size:value} does not fill the shape {shape}.",
                why="The product of the shape's numbers must be the number of values.",
                hint="How many values should there be?",
                fix="Let one number be -1: it is worked out.",
                example="import numpy\nnumpy.zeros(5).reshape(2, 3)",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"setting an array element with a sequence|inhomogeneous shape",
        explanations=(
            ExplanationText(
                "inhomogeneous",
                what="The lists inside have different lengths, so they make no array.",
                why="An array is a full grid.",
                hint="Which row is longer or shorter than the others?",
                fix="Fill the rows up, or keep a list of arrays.",
                example="import numpy\nnumpy.array([[1, 2], [3]], dtype=float)",
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError",),
        r"Can only use \.(?P<accessor>str|dt|cat) accessor with (?P<kind>\w+)",
        explanations=(
            ExplanationText(
                "str_accessor",
                what="`.{accessor}` is for columns of another kind than this one.",
                why="`.str` works on text, `.dt` on times. A column of numbers has neither.",
                hint="What does `.dtype` say of the column?",
                fix="Convert it first: `.astype(str)`, or `pd.to_datetime(…)`.",
                example=_FRAME + "sales.units.str.upper()",
            ),
        ),
    ),
    FailurePattern(
        ("IntCastingNaNError", "ValueError"),
        r"Cannot convert non-finite values|cannot convert float NaN to integer",
        explanations=(
            ExplanationText(
                "missing_to_int",
                what="A missing value cannot become a whole number.",
                why="A missing value (`NaN`) is a float, and `int` has no such thing.",
                hint="What should a missing value count as?",
                fix="Use `.fillna(0)` first, or the type `'Int64'`, which has missing values.",
                example="import pandas as pd\npd.Series([1.0, None]).astype(int)",
            ),
        ),
    ),
    FailurePattern(
        ("TypeError", "ValueError"),
        r"agg function failed|Could not convert .* to numeric|does not support (?:reduction|operation) '(?P<what>\w+)'|Cannot perform reduction '(?P<how>\w+)'",
        explanations=(
            ExplanationText(
                "not_numeric",
                what="Something was to be calculated over a column of text.",
                why="A mean or a sum needs numbers. One value that is no number makes a whole column text as it is read.",
                hint="What does `table.dtypes` say?",
                fix="Choose the columns, or convert: `pd.to_numeric(column, errors='coerce')`.",
                example="import pandas as pd\npd.Series(['a', 'b']).mean()",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"Unable to parse string (?P<text>(?:\".*?\"|'.*?')) at position (?P<row>\d+)",
        explanations=(
            ExplanationText(
                "parse_number",
                what="The value {text} in row {row} cannot be read as a number.",
                why="`to_numeric` stops at the first value that is none.",
                hint="What else is in that column that is no number?",
                fix="Write `errors='coerce'` to make such values missing, or clean them first.",
                example="import pandas as pd\npd.to_numeric(pd.Series(['1', 'two']))",
            ),
        ),
    ),
    FailurePattern(
        ("DateParseError", "ValueError", "OutOfBoundsDatetime"),
        r"Unknown datetime string format|time data \"(?P<text>.*?)\" doesn't match format|day is out of range for month|month must be in 1\.\.12",
        explanations=(
            ExplanationText(
                "parse_date",
                what="A date cannot be read.",
                why="Dates are written in many ways, and one value is written in another way than the rest.",
                hint="Which value is it?",
                fix="Say the form (`format='%d.%m.%Y'`), or `errors='coerce'` to make it missing.",
                example="import pandas as pd\npd.to_datetime('no date at all')",
            ),
        ),
    ),
    FailurePattern(
        ("EmptyDataError",),
        r"No columns to parse from file",
        explanations=(
            ExplanationText(
                "empty_file",
                what="The file is empty.",
                why="There is not even a line with the names of columns.",
                hint="Was the file written completely? How large is it?",
                fix="Look at the file before it is read.",
                example="import io\nimport pandas as pd\npd.read_csv(io.StringIO(''))",
            ),
        ),
    ),
    FailurePattern(
        ("ParserError",),
        r"Expected (?P<expected>\d+) fields in line (?P<line>\d+), saw (?P<saw>\d+)",
        explanations=(
            ExplanationText(
                "csv_fields",
                what="Line {line} of the file has {saw:field}, and the ones before it {expected}.",
                why="A separator inside of a value, or another separator than the comma, makes pieces that do not belong.",
                hint="What does that line look like?",
                fix="Name the separator (`sep=';'`), or skip such lines: `on_bad_lines='warn'`.",
                example="import io\nimport pandas as pd\npd.read_csv(io.StringIO('a,b\\n1,2\\n1,2,3\\n'))",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"cannot reindex on an axis with duplicate labels|Index contains duplicate entries",
        explanations=(
            ExplanationText(
                "duplicate_labels",
                what="A label stands more than once in the index.",
                why="Then it does not say which row is meant.",
                hint="Which labels are there twice? `index[index.duplicated()]` shows them.",
                fix="Make them unique, sum them up, or call `.reset_index()` first.",
                example="import pandas as pd\npd.Series([1, 2], index=['a', 'a']).reindex(['a', 'b'])",
            ),
        ),
    ),
)

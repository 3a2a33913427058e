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
                "column",
                what="pandas did not find `{column}{several}{none}`.",
                why="A label must match in every character and in its type.",
                hint="Which columns and labels does the table have at this line?",
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
                what="There is no row or column at that position.",
                why="`iloc` counts from 0. A filter may have removed all rows.",
                hint="How many rows and columns are there? Check `.shape`.",
                fix="Check `.empty` first, or use `.head(1)`.",
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
                what="There are no values, so there is no largest or smallest.",
                why="A filter removed everything, or all values are missing.",
                hint="Why is it empty? Look at the table before this line.",
                fix="Handle the empty case before this line.",
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
                what="A whole {kind} was used as a single truth value.",
                why="It has many values, but `and`, `or`, `not` and `if` need a single one.",
                hint="Should all of them be true, or any?",
                fix="Write `&`, `|`, `~` with parentheses around each condition, or `.any()` or `.all()`.",
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
                what="The two tables have no common column to join on.",
                why="Without `on=`, pandas joins on the columns that have the same name in both tables.",
                hint="Which column of one table corresponds to which column of the other?",
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
                what="The column to join on is `{left}` in one table and `{right}` in the other.",
                why="Values of these types are never equal.",
                hint="Which type is right?",
                fix="Convert one of the two with `.astype(…)`.",
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
                what="The columns have different lengths.",
                why="Each column of a table has one value for each row.",
                hint="Which column is shorter, and which rows are missing?",
                fix="Fill the gaps with `None`, or join the tables on a key.",
                example=_FRAME + "sales['price'] = [1, 2, 3]",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"operands could not be broadcast together with shapes? (?P<shapes>.+)|shapes (?P<dot>.+?) not aligned|shape mismatch: (?P<detail>.+?)\.?$",
        explanations=(
            ExplanationText(
                "broadcast",
                what="The shapes of the arrays do not match: {shapes}{dot}{detail}.",
                why=(
                    "Shapes are compared from the right; each pair of sizes must be equal, or one of them 1."
                ),
                hint="Which shape is not what you expect?",
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
                what="An array of {size:value} cannot have the shape {shape}.",
                why="The product of the sizes in the shape must equal the number of values.",
                hint="How many values should there be?",
                fix="Use -1 for one size: numpy works it out.",
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
                what="The inner lists have different lengths, so they cannot form an array.",
                why="All rows of an array must have the same length.",
                hint="Which row is longer or shorter than the others?",
                fix="Fill the short rows, or keep a list of arrays.",
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
                what="`.{accessor}` does not work on a column of this type.",
                why="`.str` works on strings, `.dt` on dates and times. A column of numbers has neither.",
                hint="What is the `.dtype` of the column?",
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
                what="A missing or infinite value cannot be converted to an integer.",
                why="`NaN` and infinity are floats; `int` has no such values.",
                hint="What should such a value become?",
                fix="Use `.fillna(0)` first, or the type `'Int64'`, which supports missing values.",
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
                what="This calculation is not supported for values of this type.",
                why=(
                    "A mean or a sum of strings or dates is not defined, or means something else. A single "
                    "value that is not a number makes pandas read the whole column as strings."
                ),
                hint="What does `.dtypes` show?",
                fix="Select the numeric columns, or convert them: `pd.to_numeric(…, errors='coerce')`.",
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
                what="The value {text} in row {row} cannot be converted to a number.",
                why="`to_numeric` stops at the first value that is not a number.",
                hint="Which other values in that column are not numbers?",
                fix="Use `errors='coerce'` to turn such values into missing ones, or clean them first.",
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
                what="A date cannot be parsed.",
                why="Dates come in many formats, and this one does not match the expected format.",
                hint="Which value is it?",
                fix=(
                    "Give the format with `format=`, or use `errors='coerce'` to turn it into a missing "
                    "value."
                ),
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
                what="The file contains no data.",
                why="There is not even a line with column names.",
                hint="Was the file written completely? How large is it?",
                fix="Look at the file before you read it.",
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
                what="Line {line} of the file has {saw:field}; the lines before it have {expected}.",
                why="A value contains the separator, or the separator is not a comma.",
                hint="What does that line look like?",
                fix="Set the separator with `sep=`, or skip such lines: `on_bad_lines='warn'`.",
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
                what="A label occurs more than once in the index.",
                why="The label does not identify a single row.",
                hint="Which labels are duplicates? `index[index.duplicated()]` shows them.",
                fix="Make them unique, aggregate them, or call `.reset_index()` first.",
                example="import pandas as pd\npd.Series([1, 2], index=['a', 'a']).reindex(['a', 'b'])",
            ),
        ),
    ),
)

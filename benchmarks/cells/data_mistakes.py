"""Mistakes elsewhere than in the failing code."""

from __future__ import annotations

import ast
import dataclasses
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from cells.mistakes import (
    Plants,
    Working,
    bound_in,
    call_with,
    columns,
    is_table,
    kind,
    nodes,
    plant,
    put,
    quoted,
    reads,
    renamed,
    source,
    swap,
)

# Order of cells and what an earlier cell did


@kind("not been run|not run|run cell|defined in cell|run it")
def cell_not_run(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells) - 1):
        turns = [i for i in range(len(of.cells)) if i != place]
        yield plant(of, place, of.cells, "", f"cell {place + 1}", turns=turns)


@kind("stands|below|further down|run cell|not been run|move")
def cell_too_low(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells) - 1):
        for to in range(place + 1, len(of.cells)):
            cells = [*of.cells[:place], *of.cells[place + 1 :]]
            cells.insert(to, of.cells[place])
            yield plant(of, to, tuple(cells), "", of.cells[place].split("\n")[0])


@kind("twice|again|ran before|already|run cells?|overwr")
def cell_run_twice(of: Working, chance: random.Random) -> Plants:
    for place in range(len(of.cells)):
        turns = [*range(place + 1), *range(place, len(of.cells))]
        yield plant(of, place, of.cells, "", "", turns=turns)


@kind("inplace", "sorts? in place", never=r"finds nothing|without 'return'|missing key|a missing one")
def inplace_assigned(of: Working, chance: random.Random) -> Plants:
    methods = (
        "sort_values",
        "rename",
        "drop",
        "fillna",
        "set_index",
        "reset_index",
        "dropna",
        "drop_duplicates",
        "sort_index",
        "replace",
    )
    for place, node in nodes(of, ast.Assign):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods:
            told = [source(of, place, a) for a in (*call.args, *call.keywords)]
            yield plant(
                of, place, call_with(of, place, call, [*told, "inplace=True"]), "inplace=True", "inplace"
            )
    for place, node in nodes(of, ast.Assign):
        call = node.value
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "sorted"
            and len(call.args) == 1
        ):
            told = [source(of, place, k) for k in call.keywords]
            yield swap(
                of,
                place,
                call,
                f"{source(of, place, call.args[0])}.sort({', '.join(told)})",
                "sorted",
                wrong=".sort",
            )


@kind(
    r"{wrong}.{{0,80}}(cell|In \[|assign|overwr|again)",
    "overwr",
    r"In \[\d+\]|cell \d+",
    never=r"finds nothing|without 'return'|missing key|a missing one",
)
def name_overwritten(of: Working, chance: random.Random) -> Plants:
    """A result has the name of what it was made of, which a later cell still needs."""
    for place, text in enumerate(of.cells[:-1]):
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                read = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
                for other in sorted(read - {name}):
                    made = any(other in bound_in(cell) for cell in of.cells[:place])
                    if made and any(reads(later, other) for later in of.cells[place + 1 :]):
                        cells = tuple(
                            renamed(cell, name, other) if i >= place else cell
                            for i, cell in enumerate(of.cells)
                        )
                        yield plant(of, place, cells, other, name)


@kind(
    r"{wrong}.{{0,80}}(cell|In \[|assign|overwr|again)",
    "overwr",
    r"In \[\d+\]|cell \d+",
    never=r"finds nothing|without 'return'|missing key|a missing one",
)
def frame_overwritten(of: Working, chance: random.Random) -> Plants:
    """A cell in between makes of a frame something else, under the same name."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is not None:
            way = chance.choice([f'["{node.value}"]', ".describe()", ".dtypes", ".columns", ".T", ".shape"])
            extra = f"{frame} = {frame}{way}"
            yield plant(of, place, (*of.cells[:place], extra, *of.cells[place:]), frame, extra)


@kind("reset_index|index|as_index")
def key_left_in_index(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reset_index":
            yield swap(of, place, node, source(of, place, node.func.value), "reset_index", wrong="")
        told = [k for k in node.keywords if k.arg == "as_index"]
        if told:
            rest = [source(of, place, a) for a in (*node.args, *(k for k in node.keywords if k not in told))]
            yield plant(of, place, call_with(of, place, node, rest), "", "as_index")


@kind("fit")
def fit_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("fit", "fit_transform"):
            if node.func.attr == "fit":
                yield swap(of, place, node, source(of, place, node.func.value), "fit", wrong="")
            else:
                text = put(of, place, node.func, f"{source(of, place, node.func.value)}.transform")
                yield plant(of, place, text, "transform", "fit")


@kind("not defined|no cell|nothing defines|{wrong}")
def definition_lost(of: Working, chance: random.Random) -> Plants:
    """Nothing defines the name any more, and what it was cannot be known."""
    for place, text in enumerate(of.cells):
        for node in ast.parse(text).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant | ast.List | ast.Dict | ast.Tuple)
                and isinstance(node.targets[0], ast.Name)
            ):
                yield swap(
                    of,
                    place,
                    node,
                    "pass",
                    source(of, place, node.value),
                    wrong=node.targets[0].id,
                    lost=True,
                )


# Data


def _column_texts(
    of: Working, of_numbers: Callable[[str], str]
) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Yield files with the numbers of one column written in another way: file, column, and one number before."""
    for file, text in of.files.items():
        if not file.endswith(".csv"):
            continue
        lines = text.strip("\n").split("\n")
        sep = ";" if ";" in lines[0] else ","
        rows = [line.split(sep) for line in lines]
        for i, column in enumerate(rows[0]):
            if all(re.fullmatch(r"-?\d+(\.\d+)?", row[i]) for row in rows[1:]):
                made = [rows[0], *([*row[:i], of_numbers(row[i]), *row[i + 1 :]] for row in rows[1:])]
                yield (
                    file,
                    column,
                    rows[1][i],
                    {**of.files, file: "\n".join(sep.join(row) for row in made) + "\n"},
                )


def _reader(of: Working, file: str) -> int:
    return next((place for place, text in enumerate(of.cells) if file in text), 0)


@kind(r"text|str|\$|to_numeric|astype|convert|symbol|strip|replace")
def numbers_with_symbols(of: Working, chance: random.Random) -> Plants:
    """The numbers of a column are written with a sign of money, a unit, a percent sign, blanks, or groups of digits."""
    for way in ("${}", "{} €", "{} kg", '"{:,}"', "{}%", "£ {}"):

        def written(number: str, way: str = way) -> str:
            value = float(number) if "." in number else int(number)
            return way.format(
                value * 1000 if "," in way and abs(value) < 1000 else value if "," in way else number
            )

        for file, column, before, files in _column_texts(of, written):
            if "," in way and abs(float(before)) < 1000:
                continue  # it would be another number
            yield plant(of, _reader(of, file), of.cells, written(before), column, files=files)


@kind(r"text|str|number|to_numeric|convert|unknown|no number")
def number_unknown(of: Working, chance: random.Random) -> Plants:
    """One cell of a column of numbers has a word; what number it is cannot be known."""
    word = chance.choice(["unknown", "?", "tbd", "-"])
    for file, column, before, files in _column_texts(of, str):
        lines = files[file].split("\n")
        lines[1] = lines[1].replace(before, word, 1)
        yield plant(
            of, _reader(of, file), of.cells, word, column, files={**files, file: "\n".join(lines)}, lost=True
        )


@kind("sep|delimiter", never=r"finds nothing|without 'return'|missing key|a missing one")
def wrong_separator(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if file.endswith(".csv"):
            sep = ";" if ";" in text else ","
            for other in {";", "\t", "|", ","} - {sep}:
                yield plant(
                    of,
                    _reader(of, file),
                    of.cells,
                    sep,
                    other,
                    files={**of.files, file: text.replace(sep, other)},
                )
    for place, node in nodes(of, ast.Call):
        told = [source(of, place, a) for a in (*node.args, *node.keywords)]
        rest = [text for text in told if not text.startswith("sep=")]
        if len(rest) < len(told):
            yield plant(of, place, call_with(of, place, node, rest), ",", "sep")


@kind("header|skiprows|first (row|line)", never=r"finds nothing|without 'return'|missing key|a missing one")
def wrong_header(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if file.endswith(".csv"):
            for top in ("Report of the office\n", "Exported 2025-06-01\n\n"):
                yield plant(
                    of,
                    _reader(of, file),
                    of.cells,
                    "header",
                    "skiprows",
                    files={**of.files, file: top + text},
                )
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "read_csv":
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            yield plant(
                of, place, call_with(of, place, node, [*told, "header=None"]), "header=None", "header"
            )


@kind("encoding|latin|cp1252|utf")
def wrong_encoding(of: Working, chance: random.Random) -> Plants:
    for file, text in of.files.items():
        if not text.isascii() and "@" not in file:
            files = {name: body for name, body in of.files.items() if name != file}
            yield plant(
                of, _reader(of, file), of.cells, "utf-8", "latin-1", files={**files, f"{file}@latin-1": text}
            )


@kind("dtype|text|str|number|astype|to_numeric|convert")
def read_as_text(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "read_csv":
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            yield plant(of, place, call_with(of, place, node, [*told, "dtype=str"]), "dtype=str", "dtype")
    for place, node in nodes(of, ast.List):
        if (
            is_table(of)
            and node.elts
            and all(isinstance(e, ast.Constant) and type(e.value) in (int, float) for e in node.elts)
        ):
            wrong = "[" + ", ".join(f'"{source(of, place, e)}"' for e in node.elts) + "]"
            yield swap(of, place, node, wrong, source(of, place, node))


@kind("length|same|items|values")
def value_dropped(of: Working, chance: random.Random) -> Plants:
    """A list of the data lacks an item, which cannot be known."""
    for place, node in nodes(of, ast.List):
        if len(node.elts) > 2 and all(isinstance(e, ast.Constant) for e in node.elts):
            rest = [source(of, place, e) for e in node.elts[:-1]]
            yield swap(
                of, place, node, f"[{', '.join(rest)}]", source(of, place, node.elts[-1]), wrong="", lost=True
            )


@kind("None|missing")
def value_is_none(of: Working, chance: random.Random) -> Plants:
    """A value of the data is None, which cannot be known."""
    for place, node in nodes(of, ast.List, ast.Dict):
        elements = node.elts if isinstance(node, ast.List) else node.values
        if len(elements) > 1 and all(isinstance(e, ast.Constant) for e in elements):
            one = chance.choice(elements)
            yield swap(of, place, one, "None", source(of, place, one), lost=True)


@kind("{right}")
def merge_key_differs(of: Working, chance: random.Random) -> Plants:
    """The key of a merge has another name in one of the two tables."""
    for place, node in nodes(of, ast.keyword):
        if node.arg == "on" and isinstance(node.value, ast.Constant):
            key = node.value.value
            for at, text in enumerate(of.cells[: place + 1]):
                for match in re.finditer(rf'"{key}":', text):
                    new = chance.choice(
                        [key.removesuffix("_id"), f"{key}entifier", key.replace("_", ""), f"the_{key}", "id"]
                    )
                    if new != key:
                        yield plant(
                            of, at, text[: match.start()] + f'"{new}":' + text[match.end() :], key, new
                        )


@kind("type|str|int|object|text|astype")
def merge_key_types_differ(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.keyword):
        if node.arg in ("on", "left_on", "right_on") and isinstance(node.value, ast.Constant):
            for at, table in nodes(of, ast.Dict):
                for key, values in zip(table.keys, table.values, strict=True):
                    if (
                        isinstance(key, ast.Constant)
                        and key.value == node.value.value
                        and isinstance(values, ast.List)
                    ):
                        text = [source(of, at, e) for e in values.elts]
                        if at <= place and all(t.isdigit() for t in text):
                            wrong = "[" + ", ".join(f'"{t}"' for t in text) + "]"
                            yield swap(of, at, values, wrong, key.value)


@kind("tz|time ?zone|aware|naive|utc")
def one_time_is_aware(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        name = source(of, place, node.func)
        told = [source(of, place, a) for a in (*node.args, *node.keywords)]
        if name == "pd.to_datetime":
            yield plant(of, place, call_with(of, place, node, [*told, "utc=True"]), "utc=True", "tz")
        elif name in ("pd.Timestamp", "pd.date_range"):
            yield plant(of, place, call_with(of, place, node, [*told, 'tz="UTC"']), 'tz="UTC"', "tz")
        elif name == "datetime" and "import datetime" in of.text:
            cells = list(of.cells)
            cells[place] = call_with(of, place, node, [*told, "tzinfo=timezone.utc"])
            cells = [
                re.sub(r"(?m)^from datetime import ", "from datetime import timezone, ", cell)
                for cell in cells
            ]
            yield plant(of, place, tuple(cells), "timezone.utc", "tz")


@kind("format|%[Ymd]")
def wrong_date_format(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Constant):
        if isinstance(node.value, str) and re.search(r"%Y.%m.%d", node.value):
            for wrong in ("%d/%m/%Y", "%Y/%m/%d", "%y-%m-%d", "%Y-%d-%m %H:%M"):
                text = put(of, place, node, quoted(node.value.replace("%Y-%m-%d", wrong)))
                yield plant(of, place, text, wrong, node.value)


@kind("array|list|json|parse|loads|text|str")
def json_not_parsed(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        name = source(of, place, node.func)
        if name in ("json.loads", "json.load") and node.args:
            yield swap(of, place, node, source(of, place, node.args[0]), name, wrong="text")
            other = "json.load" if name == "json.loads" else "json.loads"
            yield swap(of, place, node.func, other, name)


# Removed interfaces: what was written for an older version


@dataclasses.dataclass(frozen=True)
class Removed:
    """Interface that is no more. now: pattern of its successor; then: what stood there; word: the successor's name."""

    now: str
    then: str
    word: str


def _removed(name: str, rows: Sequence[Removed]) -> None:
    """Add a kind: code of an older version."""

    def plants(of: Working, chance: random.Random) -> Plants:
        for row in rows:
            for place, text in enumerate(of.cells):
                for match in re.finditer(row.now, text):
                    new = text[: match.start()] + match.expand(row.then) + text[match.end() :]
                    yield plant(of, place, new, match.expand(row.then), row.word)

    plants.__name__ = name
    kind("{right}")(plants)


_removed("removed_in_pandas", [
    Removed(r"pd\.concat\(\[(\w+), (\w+)\]", r"\1.append(\2", "concat"),
    Removed(r"\.items\(\)", ".iteritems()", "items"),
    Removed(r"\.ffill\(\)", '.fillna(method="ffill")', "ffill"),
    Removed(r"\.bfill\(\)", '.fillna(method="bfill")', "bfill"),
    Removed(r"\.loc\[", ".ix[", "loc"),
    Removed(r"\.to_numpy\(\)", ".as_matrix()", "to_numpy"),
    Removed(r"\.sort_values\(", ".sort(", "sort_values"),
    Removed(r"\.drop\(columns=(\[[^\]]*\])\)", r".drop(\1, 1)", "columns"),
    Removed(r"\.map\((?=lambda|str|round)", ".applymap(", "map"),
    Removed(r'"ME"', '"M"', "ME"),
    Removed(r'"h"', '"H"', "h"),
    Removed(r"\.is_monotonic_increasing", ".is_monotonic", "is_monotonic_increasing"),
    Removed(r"\((\w+(?:\[\S+\])?) - \1\.mean\(\)\)\.abs\(\)\.mean\(\)", r"\1.mad()", "mean"),
    Removed(r'on_bad_lines="skip"', "error_bad_lines=False", "on_bad_lines"),
    Removed(r"\.dt\.isocalendar\(\)\.week", ".dt.week", "isocalendar"),
    Removed(r"\.rolling\(window=(\d+)\)\.mean\(\)", r".rolling_mean(\1)", "rolling"),
    Removed(r'orient="records"', 'orient="record"', "records"),
    Removed(r"\.explode\(", ".explode_rows(", "explode"),
    Removed(r"pd\.json_normalize\(", "pd.io.json.json_normalize(", "json_normalize"),
])  # fmt: skip
_removed("removed_in_numpy", [
    *(Removed(rf"\bnp\.{now}\b", f"np.{then}", now) for now, then in (
        ("float64", "float"), ("int64", "int"), ("trapezoid", "trapz"), ("prod", "product"), ("isin", "in1d"),
        ("nan", "NaN"), ("inf", "Inf"), ("round", "round_"), ("vstack", "row_stack"), ("all", "alltrue"),
        ("any", "sometrue"), ("cumprod", "cumproduct"), ("str_", "unicode_"), ("complex128", "complex"),
    )),
    Removed(r"np\.asarray\((\w+), dtype=float\)", r"np.asfarray(\1)", "asarray"),
    Removed(r"np\.ptp\((\w+)\)", r"\1.ptp()", "np.ptp"),
])  # fmt: skip
_removed("removed_in_python", [
    Removed(r"\.items\(\)", ".iteritems()", "items"),
    Removed(r"(?m)^print\((.+)\)$", r"print \1", "print("),
    Removed(r"\brange\(", "xrange(", "range"),
    Removed(r'"(\w+)" in (\w+)\b(?=:|$| and)', r'\2.has_key("\1")', "in"),
    Removed(r"time\.perf_counter\(\)", "time.clock()", "perf_counter"),
    Removed(r"from collections\.abc import", "from collections import", "collections.abc"),
    Removed(r"list\((\w+)\.keys\(\)\)\[", r"\1.keys()[", "list"),
    Removed(r"math\.gcd", "fractions.gcd", "math"),
    Removed(r"string\.ascii_letters", "string.letters", "ascii_letters"),
    Removed(r"except (\w+) as (\w+):", r"except \1, \2:", "as"),
    Removed(r"from functools import reduce\n", "", "functools"),
    Removed(r"\bstr\(", "unicode(", "str"),
    Removed(r"\bopen\(", "file(", "open"),
    Removed(r"\bnext\((\w+)\)", r"\1.next()", "next"),
])  # fmt: skip
_removed("removed_elsewhere", [
    Removed(r"sparse_output=", "sparse=", "sparse_output"),
    Removed(r"get_feature_names_out", "get_feature_names", "get_feature_names_out"),
    Removed(r"from sklearn\.model_selection import", "from sklearn.cross_validation import", "model_selection"),
    Removed(r"from sklearn\.impute import SimpleImputer", "from sklearn.preprocessing import Imputer as SimpleImputer", "SimpleImputer"),
    Removed(r"root_mean_squared_error\((\w+), (\w+)\)", r"mean_squared_error(\1, \2, squared=False)", "root_mean_squared_error"),
    Removed(r"penalty=None", 'penalty="none"', "None"),
    Removed(r"density=True", "normed=True", "density"),
    Removed(r'matplotlib\.colormaps\[("\w+")\]', r"plt.cm.get_cmap(\1)", "colormaps"),
    Removed(r'"seaborn-v0_8"', '"seaborn"', "seaborn-v0_8"),
    Removed(r"\.grid\(visible=", ".grid(b=", "visible"),
    Removed(r"\.group_by\(", ".groupby(", "group_by"),
    Removed(r"\.with_columns\(", ".with_column(", "with_columns"),
    Removed(r"descending=", "reverse=", "descending"),
    Removed(r"\.map_elements\(", ".apply(", "map_elements"),
    Removed(r"\.str\.strip_chars\(", ".str.strip(", "strip_chars"),
    Removed(r"\.unpivot\(", ".melt(", "unpivot"),
    Removed(r"(?<=execute\()text\((\"[^\"]*\")\)", r"\1", "text"),
    Removed(r"\bconnection\.execute\(", "engine.execute(", "connect"),
    Removed(r"select\(([\w., ]+)\)", r"select([\1])", "select"),
])  # fmt: skip

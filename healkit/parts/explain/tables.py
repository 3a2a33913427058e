"""Tables and arrays: what their explanations name, as edits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from healkit.core.contracts.patches import Edit, EditKind
from healkit.core.pysource.nodes import called_name
from healkit.errors import near_misses
from healkit.parts.explain.facts.values import is_number
from healkit.parts.explain.formats import cleaned, mixed, reading
from healkit.parts.explain.site import Proposal, Site

_REDUCTIONS = frozenset((
    "mean", "sum", "median", "std", "var", "min", "max", "prod", "corr", "cov", "quantile", "sem", "skew", "corrwith",
    "rank", "idxmax", "idxmin",
))  # fmt: skip
_TEXT_METHODS = frozenset((
    "lower", "upper", "title", "capitalize", "strip", "lstrip", "rstrip", "split", "rsplit", "contains", "startswith",
    "endswith", "zfill", "len", "extract", "match", "fullmatch", "find", "join", "removeprefix", "removesuffix", "casefold",
    "isdigit", "isnumeric", "isalpha", "ljust", "rjust", "center", "swapcase", "partition", "slice", "findall",
))  # fmt: skip
_TIME_PARTS = frozenset((
    "year", "month", "day", "hour", "minute", "second", "days", "seconds", "weekday", "dayofweek", "dayofyear", "quarter",
    "date", "time", "strftime", "total_seconds", "isocalendar", "normalize", "day_name", "month_name", "tz_localize",
    "tz_convert", "to_pydatetime", "is_month_end", "is_month_start", "to_period", "floor", "ceil", "daysinmonth",
))  # fmt: skip
#: Functions of pandas that are called like methods.
_FUNCTIONS = frozenset(
    ("to_numeric", "to_datetime", "to_timedelta", "cut", "qcut", "get_dummies", "crosstab")
)
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SIGNS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|"}


def _calls(site: Site, *names: str) -> list[ast.Call]:
    """Return calls of these names: those of the failing statement, the marked ones first."""
    candidates = [*site.nodes(ast.Call), *site.nodes(ast.Call, near=False)]
    return [call for call in dict.fromkeys(candidates) if called_name(call) in names]


# Labels, rows and columns


def several_columns(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in site.nodes(ast.Subscript):
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            yield Proposal(
                "For several columns, write a list: two pairs of brackets.",
                site.source.wrap(node.slice, "[", "]"),
            )


def rows_not_columns(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give `apply` the axis of rows if its function uses a column."""
    wanted = site.facts.get("wanted", "").strip("`'\"")
    wanted = match.groupdict().get("name") or wanted
    functions = {node.name: node for node in site.all(ast.FunctionDef)}
    for call in site.all(ast.Call):
        axis = next((k.value for k in call.keywords if k.arg == "axis"), None)
        if called_name(call) != "apply" or not call.args or getattr(axis, "value", 0) not in (0, "index"):
            continue
        argument = call.args[0]
        name = argument.id if isinstance(argument, ast.Name) else ""
        function = argument if isinstance(argument, ast.Lambda) else functions.get(name)
        if function is not None and any(
            (isinstance(node, ast.Constant) and node.value == wanted)
            or (isinstance(node, ast.Attribute) and node.attr == wanted)
            for node in ast.walk(function)
        ):
            edits = (
                site.source.add_argument(call, "axis=1") if axis is None else site.source.replace(axis, "1")
            )
            yield Proposal("`apply` works by columns; with `axis=1` it works by rows.", edits)


def drop_columns(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in _calls(site, "drop"):
        if len(call.args) == 1 and not call.keywords:
            at = site.source.span(call.args[0])[0]
            yield Proposal("Without `columns=`, `drop` removes rows.", [Edit(at, at, "columns=")])


def index_as_column(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read the index if a column is now the index, or make it a column again."""
    key = site.facts.get("wanted", "").strip("`'\"")
    source = site.source
    for node in site.nodes(ast.Subscript, near=False):
        key_nodes = node.slice.elts if isinstance(node.slice, ast.List) else [node.slice]
        if not any(isinstance(key_node, ast.Constant) and key_node.value == key for key_node in key_nodes):
            continue
        if node.slice is key_nodes[0]:
            text = f"{source.segment(node.value)}.index"
            less = 0.04 if site.facts.get("about") == "index_of_column" else 0.02
            yield Proposal(f"`{key}` is the index here.", source.replace(node, text), less=less)
        origin = node.value
        while not isinstance(origin, ast.Call) and (values := site.made(origin)) and values[-1] is not origin:
            origin = values[-1]
            origin = (
                origin.value
                if isinstance(origin, ast.Subscript) and isinstance(origin.value, ast.Name)
                else origin
            )
        if isinstance(origin, ast.Call):
            edits = source.wrap(origin, "", ".reset_index()")
            yield Proposal(f"`{key}` is the index; make it a column again.", edits, less=0.03)
        return


def other_key_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Name the key of each table where they have different names."""
    facts = site.facts
    source = site.source
    for call in _calls(site, "merge", "join"):
        on = next((k for k in call.keywords if k.arg == "on"), None)
        if on is None or not isinstance(on.value, ast.Constant):
            continue
        key = str(on.value.value)
        column_names = re.findall(r"`'([^`']+)'`", facts.get("known", ""))
        parts = [
            name for name in column_names if name in key.split("_") or key in name.split("_") or name in key
        ]
        rights = [argument for argument in call.args if isinstance(argument, ast.expr)][-1:] + [
            k.value for k in call.keywords if k.arg == "right"
        ]
        right_lacks = facts.get("owner") in {
            *(f"`{source.segment(table)}`" for table in rights),
            "the right table",
        }
        for number, column in enumerate(
            dict.fromkeys([*near_misses(key, column_names, 2), *parts, *column_names])
        ):
            names = (repr(key), repr(column)) if right_lacks else (repr(column), repr(key))
            yield Proposal(
                f"One table has {key!r} and the other {column!r}: name both.",
                source.replace(on, f"left_on={names[0]}, right_on={names[1]}"),
                less=0.03 * number,
            )


def one_key_type(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert the key of one table to its type in the other table."""
    kinds, source = [match["left"], match["right"]], site.source
    text = next((at for at, kind in enumerate(kinds) if kind in {"object", "str", "string"}), 1)
    sample = site.facts.get(("left_value", "right_value")[text], "'0'").strip("`'\"")
    for call in _calls(site, "merge"):
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        tables = [*call.args[:2], *(named[side] for side in ("left", "right") if side in named)]
        if isinstance(call.func, ast.Attribute) and len(tables) == 1:
            tables.insert(0, call.func.value)
        if len(tables) != 2:
            continue
        keys = [getattr(named.get(f"{side}_on"), "value", match["key"]) for side in ("left", "right")]
        for number, (at, kind) in enumerate(((text, kinds[1 - text]), (1 - text, "str"))):
            name = {"int64": "int", "float64": "float", "str": "str"}.get(kind, repr(kind))
            if number == 0 and name in ("int", "float") and not re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", sample):
                continue  # not every text is a number
            edits = source.wrap(tables[at], "", f".astype({{{keys[at]!r}: {name}}})")
            yield Proposal(
                f"Convert the key {keys[at]!r} of one table to `{name}`.", edits, less=0.05 * number
            )


def merge_for_join(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    names = re.findall(r"`'([^`']+)'`", site.facts.get("columns", ""))
    source = site.source
    for call in _calls(site, "join"):
        if not names or not isinstance(call.func, ast.Attribute):
            continue
        end = source.span(call.func)[1]
        on = repr(names[0] if len(names) == 1 else names)
        how = "" if any(k.arg == "how" for k in call.keywords) else ", how='left'"
        if not any(k.arg == "on" for k in call.keywords):
            edits = [Edit(end - 4, end, "merge"), *source.add_argument(call, f"on={on}{how}")]
            yield Proposal("`join` matches by the index; `merge` matches by a column of both tables.", edits)
        edits = source.add_argument(call, "rsuffix='_right'")
        yield Proposal("Give the columns of the other table new names.", edits, less=0.1)


def pivot_aggregated(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in _calls(site, "unstack"):
        if isinstance(call.func, ast.Attribute):
            for number, how in enumerate(("sum", "mean", "first", "last")):
                edits = site.source.wrap(call.func.value, "", f".groupby(level=[0, 1]).{how}()")
                reason = f"There are several values for one cell: take their {how}."
                yield Proposal(reason, edits, less=0.03 * number)
    for call in _calls(site, "pivot"):
        end = site.source.span(call.func)[1]
        for number, how in enumerate(("sum", "mean", "first", "last", "max", "min", "count")):
            edits = [Edit(end, end, "_table"), *site.source.add_argument(call, f"aggfunc={how!r}")]
            reason = f"There are several values for one cell: take their {how}."
            yield Proposal(reason, edits, less=0.03 * number)


# Conditions on columns


def conditions(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write a condition on columns with the signs that work row by row, each part in parentheses."""
    source = site.source
    yield from parenthesized(site, match)
    for both in site.nodes(ast.BoolOp, near=False):
        sign = "&" if isinstance(both.op, ast.And) else "|"
        text = f" {sign} ".join(_row_by_row(site, part) for part in both.values)
        if not source.in_parentheses(both) and isinstance(source.parents[both], ast.BoolOp | ast.UnaryOp):
            text = f"({text})"
        yield Proposal(f"Join conditions on columns with `{sign}`.", source.replace(both, text))
        break  # the outermost one holds the others
    for node in site.nodes(ast.UnaryOp, near=False):
        if isinstance(node.op, ast.Not) and not isinstance(source.parents[node], ast.BoolOp):
            yield Proposal("`~` negates row by row.", source.replace(node, _row_by_row(site, node)))
            yield Proposal(
                "`.empty` says whether a table has no rows.",
                source.replace(node, f"{source.atom(node.operand)}.empty"),
                less=0.1,
            )
    for test in site.nodes(ast.Compare, near=False):
        if isinstance(test.ops[0], ast.In | ast.NotIn) and len(test.ops) == 1:
            yield Proposal("`.isin` checks row by row.", source.replace(test, _row_by_row(site, test)))
    if isinstance(site.statement, ast.If | ast.While | ast.Assert):
        condition = site.statement.test
        forms = ("not {o}.empty",) if isinstance(condition, ast.Name | ast.Call) else ()
        for number, form in enumerate((*forms, "{o}.any()", "{o}.all()")):
            text = form.format(o=source.atom(condition))
            yield Proposal(
                f"A single True or False is needed: `{text}`.",
                source.replace(condition, text),
                less=0.1 + 0.03 * number,
            )


def _row_by_row(site: Site, node: ast.expr) -> str:
    """Return a condition with the operators that work row by row, with parentheses if `&` would break it."""
    source = site.source
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return f"~{source.atom(inner)}"
        case ast.BoolOp(op=op, values=parts):
            sign = " & " if isinstance(op, ast.And) else " | "
            return f"({sign.join(_row_by_row(site, part) for part in parts)})"
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]):
            inside = source.segment(right)
            text = f"{source.atom(left)}.isin({inside})"
            return f"~{text}" if isinstance(op, ast.NotIn) else text
    return f"({source.segment(node)})" if isinstance(node, ast.Compare) else source.atom(node)


def parenthesized(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Put parentheses around each comparison of `a > 1 & b == 2`, where `&` binds more tightly."""
    source = site.source
    for node in site.nodes(ast.Compare, near=False):
        pieces: list[str | ast.expr] = [*_split(site, node.left)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARED:
                break
            pieces += [_COMPARED[type(op)], *_split(site, right)]
        else:
            if not any(piece in ("&", "|") for piece in pieces if isinstance(piece, str)):
                continue
            groups: list[list[str]] = [[]]
            signs: list[str] = []
            for piece in pieces:
                if piece in ("&", "|"):
                    signs.append(str(piece))
                    groups.append([])
                else:
                    groups[-1].append(piece if isinstance(piece, str) else source.segment(piece))
            texts = [f"({' '.join(group)})" if len(group) > 1 else group[0] for group in groups]
            text = texts[0] + "".join(f" {sign} {part}" for sign, part in zip(signs, texts[1:], strict=True))
            yield Proposal(
                "`&` and `|` bind more tightly than comparisons: put parentheses around each.",
                source.replace(node, text),
                less=-0.03,
            )


def _split(site: Site, node: ast.expr) -> list[str | ast.expr]:
    """Return the parts of `a & b` and the operators between them; other expressions stay as they are."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS and not site.source.in_parentheses(node):
        return [*_split(site, node.left), _SIGNS[type(node.op)], *_split(site, node.right)]
    start, end = site.source.span(node)
    inside = isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp) and site.source.in_parentheses(node)
    return [f"({site.source.text[start:end]})"] if inside else [node]


# Columns of another type


def accessor(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert a column before its `.str` or `.dt`."""
    source, accessor = site.source, match.groupdict().get("accessor")
    conversions = {"str": ("{}.astype(str)",), "dt": ("pd.to_datetime({})", '{}.astype("datetime64[us]")')}
    forms = conversions.get(accessor or "", ())
    for node in [n for n in site.nodes(ast.Attribute) if n.attr == accessor]:
        for number, form in enumerate(forms):
            text, imported = site.with_module(form.format(source.segment(node.value)))
            edits = [*source.replace(node.value, text), *imported]
            less = 0.05 * number + 0.1 * len(imported)
            yield Proposal(f"Convert the column first: `{text}`.", edits, less=less)


def through_accessor(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Call a text's or a time's method by `.str` or `.dt`, and a function of pandas as a function."""
    name, source = match["name"], site.source
    for node in [n for n in site.nodes(ast.Attribute) if n.attr == name]:
        end = source.span(node.value)[1]
        call = source.parents[node]
        for accessor, names in (("str", _TEXT_METHODS), ("dt", _TIME_PARTS)):
            if name in names:
                yield Proposal(
                    f"For each value of a column: `.{accessor}.{name}`.", [Edit(end, end, f".{accessor}")]
                )
        if name in ("week", "weekofyear"):
            text = f"{source.segment(node.value)}.dt.isocalendar().week".replace(".dt.dt.", ".dt.")
            yield Proposal("Weeks are a part of `.isocalendar()`.", source.replace(node, text))
        if name in _FUNCTIONS and isinstance(call, ast.Call) and call.func is node:
            rest = "".join(f", {source.segment(argument)}" for argument in (*call.args, *call.keywords))
            text, imported = site.with_module(f"pd.{name}({source.segment(node.value)}{rest})")
            reason = f"`{name}` is a function of pandas, not a method."
            yield Proposal(reason, [*source.replace(call, text), *imported])


def fill_before_int(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in _calls(site, "astype"):
        if isinstance(call.func, ast.Attribute):
            end = site.source.span(call.func.value)[1]
            for number, text in enumerate((".fillna(0)", ".dropna()")):
                reason = "A missing value counts as 0." if not number else "Leave missing values out."
                yield Proposal(reason, [Edit(end, end, text)], less=0.05 * number)
            for target in [
                argument
                for argument in call.args
                if site.source.segment(argument) in {"int", "'int'", '"int"'}
            ]:
                edits = site.source.replace(target, '"Int64"')
                yield Proposal("The type `Int64` supports missing values.", edits, less=0.03)


def clean_numbers(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Remove what is not part of a number from a column of text before it is converted."""
    facts = site.facts
    value = facts.get("value", "").strip("`")[1:-1]
    source = site.source
    for call in _calls(site, "astype", "to_numeric", "apply", "map"):
        method = isinstance(call.func, ast.Attribute) and called_name(call) != "to_numeric"
        if not method and not (call.args and called_name(call) == "to_numeric"):
            continue
        column = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0]
        for number, (reason, text) in enumerate(_cleaned_column(site, column, value)):
            less, kind = 0.03 * number + mixed(site), reading(site, reason)
            yield Proposal(reason, source.replace(column, text), less, kind=kind)
        reason = f"A value such as {value!r} counts as missing."
        if method:
            text, imported = site.with_module(f"pd.to_numeric({source.segment(column)}, errors='coerce')")
            yield Proposal(reason, [*source.replace(call, text), *imported], less=0.15)
        elif not any(keyword.arg == "errors" for keyword in call.keywords):
            yield Proposal(reason, source.add_argument(call, "errors='coerce'"), less=0.1)

    about = facts.get("about")
    for node in site.nodes(ast.expr) if about in ("calculated_mixed", "operand_mixed") else ():
        if source.segment(node) == facts["owner"].strip("`"):
            for number, (reason, text) in enumerate(_cleaned_column(site, node, value)):
                converted, imported = site.with_module(f"pd.to_numeric({text})")
                edits = [*source.replace(node, converted), *imported]
                yield Proposal(reason, edits, 0.03 * number + mixed(site), kind=reading(site, reason))


def columns_as_numbers(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Convert each column of numbers that are text, wherever the failing statement reads it."""
    facts = site.facts
    columns, source = set(facts.get("columns", "").split("\n")) - {""}, site.source
    nodes = [node for node in site.nodes(ast.expr, near=False) if source.segment(node) in columns]
    inner = {part for node in nodes for part in ast.walk(node) if part is not node}
    pandas = site.module_name("pandas")
    around = (f"{pandas}.to_numeric(", ")") if pandas else ("", ".astype(float)")
    read = [
        column_node
        for column_node in nodes
        if column_node not in inner and isinstance(getattr(column_node, "ctx", None) or ast.Load(), ast.Load)
    ]
    edits = [edit for node in read for edit in source.wrap(node, *around)]
    if edits:
        yield Proposal(f"Convert {facts['owner']} first: `{around[0]}…{around[1]}`.", edits)


def _cleaned_column(site: Site, column: ast.expr, value: str) -> Iterator[tuple[str, str]]:
    """Yield the steps that remove everything that is not part of a number from a column, with the reason."""
    for reason, text in cleaned(site, value, f"{site.source.atom(column)}.str", site.source.segment(column)):
        chained = re.sub(r"\)\.(replace|lstrip|rstrip)", r").str.\1", text)
        if ".str." in chained:
            yield reason, chained


def numeric_only(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in _calls(site, *_REDUCTIONS):
        if isinstance(call.func, ast.Attribute) and not any(k.arg == "numeric_only" for k in call.keywords):
            edits = site.source.add_argument(call, "numeric_only=True")
            yield Proposal("Calculate only with the columns of numbers.", edits)


#: A day above 12 stands where pandas has taken the number for a month.
_DAY_FIRST = re.compile(r'time data "(?:1[3-9]|2\d|3[01])[/.-]\d+[/.-].* format "%m[/.-]%d')


def date_formats(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    ways = ["format='mixed'", "dayfirst=True", "format='mixed', dayfirst=True", "errors='coerce'"]
    if _DAY_FIRST.search(site.message):
        ways.insert(0, ways.pop(1))
    for call in _calls(site, "to_datetime"):
        form = next((keyword for keyword in call.keywords if keyword.arg == "format"), None)
        for number, text in enumerate(ways):
            if form is not None and text.startswith("format"):
                edits = site.source.replace(form, text)
            else:
                edits = site.source.add_argument(call, text)
            yield Proposal(f"The dates have different formats: `{text}`.", edits, less=0.05 * number)


def date_to_time(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Compare a column of times with a time instead of a date."""
    for test in [n for n in site.nodes(ast.Compare, near=False) if len(n.ops) == 1]:
        for number, side in enumerate((test.comparators[0], test.left)):
            text, imported = site.with_module(f"pd.Timestamp({site.source.segment(side)})")
            edits = [*site.source.replace(side, text), *imported]
            yield Proposal("Compare with a time: `pd.Timestamp`.", edits, less=0.05 * number)


def one_row(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for call in _calls(site, "DataFrame"):
        for argument in call.args[:1]:
            edits = site.source.wrap(argument, "[", "]")
            yield Proposal("For one row, put the dict into a list.", edits)


#: Lines above a table at most, and the arguments that leave some out.
_PROSE_MAX_LINES, _SKIPS = 20, frozenset(("skiprows", "header", "names"))


def separator(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Pass the separator of the file, or the row with the column names, to `read_csv`."""
    facts = site.facts
    option = (facts.get("separator") or facts.get("header", "")).strip("`")
    another = "separator" if "separator" in facts else "header"
    reason = f"The file has another {another}: `{option}`."
    name, source = option.partition("=")[0], site.source
    for call in site.all(ast.Call) if option else ():
        argument = next((keyword for keyword in call.keywords if keyword.arg == name), None)
        if called_name(call) in ("read_csv", "DictReader"):
            edits = (
                source.add_argument(call, option) if argument is None else source.replace(argument, option)
            )
            if argument is not None and option in (
                "header=0",
                "has_header=True",
                "sep=','",
                "separator=','",
            ):  # as it is without
                edits = source.remove_argument(call, argument)
            yield Proposal(reason, edits)


header = separator  # of another row


def header_above(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Read the column names from the first line of a file if the code expects them further down."""
    for call in site.all(ast.Call):
        for keyword in call.keywords if called_name(call) == "read_csv" else ():
            low = (
                isinstance(keyword.value, ast.Constant)
                and type(keyword.value.value) is int
                and keyword.value.value
            )
            if keyword.arg in ("header", "skiprows") and low:
                reason = (
                    f"Without `{site.source.segment(keyword)}`, the columns have the names of the first line."
                )
                yield Proposal(reason, site.source.remove_argument(call, keyword))


def skip_lines(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Leave out the lines of text above a table: each has one field, but the table has more."""
    line = int(match["line"])
    for call in _calls(site, "read_csv"):
        if (
            match["expected"] == "1"
            and 3 <= line <= _PROSE_MAX_LINES
            and not {k.arg for k in call.keywords} & _SKIPS
        ):
            reason = f"The {line - 1} lines before line {line} may not be part of the table."
            yield Proposal(reason, site.source.add_argument(call, f"skiprows={line - 1}"))


def numbers_of_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Pass the separator of a row of numbers to `loadtxt`, or say that the first row has names."""
    text, source = match["text"].strip("'"), site.source
    for call in _calls(site, "loadtxt"):
        keywords = {keyword.arg: keyword for keyword in call.keywords}
        for separator in (";", ",", "\t", "|"):
            parts = text.split(separator)
            if len(parts) > 1 and all(map(is_number, parts)):
                option = f"delimiter={separator!r}"
                old = keywords.get("delimiter")
                edits = source.add_argument(call, option) if old is None else source.replace(old, option)
                yield Proposal(f"The row has another separator: `{option}`.", edits)
        if (
            match["row"] == "0"
            and not is_number(text)
            and not re.search(r"\d", text)
            and "skiprows" not in keywords
        ):
            yield Proposal(
                "The first row has names: `skiprows=1`.", source.add_argument(call, "skiprows=1"), less=0.02
            )


#: Functions that put arrays together along one axis, and along the other.
_STACKS = {"hstack": "vstack", "vstack": "hstack"}


def other_axis(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use an existing axis, or the one along which the arrays fit."""
    missing = "concatenation axis" not in match.string
    dimension = re.search(r"array of dimension (\d+)", match.string)
    for call in site.nodes(ast.Call)[:1]:
        if (
            (counterpart := _STACKS.get(called_name(call), ""))
            and not missing
            and isinstance(call.func, ast.Attribute)
        ):
            text = f"{site.source.segment(call.func.value)}.{counterpart}"
            yield Proposal(
                f"The arrays fit along the other axis: `{counterpart}`.", site.source.replace(call.func, text)
            )
            return
        keyword = next((k for k in call.keywords if k.arg == "axis"), None)
        number = _number_of(keyword.value) if keyword is not None else 0
        if number is None or (keyword is None and missing):
            continue
        for axis in range(int(dimension[1]) if dimension is not None else 2):
            if axis != number:
                text = f"axis={axis}"
                edits = (
                    site.source.add_argument(call, text)
                    if keyword is None
                    else site.source.replace(keyword, text)
                )
                kind: EditKind = "assumes" if missing else "restructures"
                reason = (
                    f"The array has the axis {axis}." if missing else f"The arrays fit along axis {axis}."
                )
                yield Proposal(reason, edits, less=0.01 * axis, kind=kind)


def _number_of(node: ast.expr) -> int | None:
    """Return a whole number that the code writes; None for anything else."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def renamed_column(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the new name of a column that the code itself has renamed."""
    wanted = site.facts.get("wanted", "").strip("`'")
    calls = [call for call in site.all(ast.Call) if called_name(call) == "rename"] if wanted else []
    for table in (node for call in calls for node in ast.walk(call) if isinstance(node, ast.Dict)):
        for old, new in zip(table.keys, table.values, strict=True):
            if isinstance(old, ast.Constant) and isinstance(new, ast.Constant) and old.value == wanted:
                uses = [
                    constant for constant in site.nodes(ast.Constant, near=False) if constant.value == wanted
                ]
                edits = site.source.replace_all((use for use in uses if use is not old), repr(new.value))
                yield Proposal(f"{wanted!r} was renamed to {new.value!r} in line {old.lineno}.", edits)


def both_key_names(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Name the keys of both tables, where some of their names are similar."""
    left_columns, right = (
        re.findall(r"`'([^`']+)'`", site.facts.get(f"{side}_columns", "")) for side in ("left", "right")
    )
    pairs = [
        (left_name, right_name)
        for left_name in left_columns
        for right_name in right
        if right_name in near_misses(left_name, right, 1)
        or right_name in left_name.split("_")
        or left_name in right_name.split("_")
    ]
    for call in _calls(site, "merge"):
        for number, (left_key, right_key) in enumerate(pairs[:3]):
            edits = site.source.add_argument(call, f"left_on={left_key!r}, right_on={right_key!r}")
            yield Proposal(f"Merge by {left_key!r} and {right_key!r}.", edits, less=0.05 * number)


def reshape_free(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Leave one size of a shape to numpy."""
    for call in _calls(site, "reshape"):
        sizes = [
            part
            for argument in call.args
            for part in (argument.elts if isinstance(argument, ast.Tuple) else [argument])
        ]
        for number, size in enumerate(sizes if len(sizes) > 1 else []):
            edits = site.source.replace(size, "-1")
            yield Proposal("With -1, numpy calculates that size.", edits, less=0.05 * number)


def each_value(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Apply a function of one number to each value: `math.sqrt` becomes `np.sqrt`, `int(…)` `.astype(int)`."""
    source = site.source
    for call in site.nodes(ast.Call):
        match call.func, call.args:
            case ast.Name(id="int" | "float" as kind), [given]:
                text = f"{source.atom(given)}.astype({kind})"
                yield Proposal(f"Convert each value: `.astype({kind})`.", source.replace(call, text))
            case ast.Attribute(value=ast.Name(id="math"), attr=name), [_, *_]:
                text, imported = site.with_module(f"np.{name}")
                edits = [*source.replace(call.func, text), *imported]
                yield Proposal(f"`{text}` works on each value.", edits)


def column_as_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Make text of the numbers of a column before they are joined with a text."""
    source = site.source
    for node in [n for n in site.nodes(ast.BinOp) if isinstance(n.op, ast.Add)]:
        if _number_of(node.left) is not None or _number_of(node.right) is not None:
            continue  # no text is meant
        sides = [
            side
            for side in (node.left, node.right)
            if isinstance(side, ast.Name | ast.Subscript | ast.Attribute | ast.Call)
        ]
        for number, side in enumerate(sides):
            text = f"{source.segment(side)}.astype(str)"
            yield Proposal(
                f"Convert it to text first: `{text}`.", source.replace(side, text), less=0.03 * number
            )


def name_in_query(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Put `@` before a variable in the text of a query."""
    name, source = match["name"], site.source
    if name not in site.names():
        return
    for call in _calls(site, "query", "eval"):
        for argument in call.args[:1]:
            text = re.sub(rf"(?<![\w@.`]){name}\b", f"@{name}", source.segment(argument))
            yield Proposal(f"`{name}` is a variable: `@{name}`.", source.replace(argument, text))


def zone_given(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Give a new time the time zone of the other times."""
    here = [*site.nodes(ast.Call, near=False)]
    origins = [value for name in site.nodes(ast.Name, near=False) for value in site.made(name)]
    for call in dict.fromkeys([*here, *(origin for origin in origins if isinstance(origin, ast.Call))]):
        text = {"Timestamp": "tz='UTC'", "to_datetime": "utc=True", "date_range": "tz='UTC'"}.get(
            called_name(call), ""
        )
        if text and not any(keyword.arg in ("tz", "utc") for keyword in call.keywords):
            yield Proposal(f"With a time zone: `{text}`.", site.source.add_argument(call, text))


def gaps_in_mask(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Say that a missing text contains nothing."""
    origins = [value for name in site.nodes(ast.Name, near=False) for value in site.made(name)]
    inside = [call for origin in origins for call in ast.walk(origin) if isinstance(call, ast.Call)]
    for call in dict.fromkeys([*site.nodes(ast.Call, near=False), *inside]):
        if called_name(call) in ("contains", "startswith", "endswith", "match", "fullmatch"):
            yield Proposal("A missing text counts as False.", site.source.add_argument(call, "na=False"))


def kept_axis(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Keep the axis of a sum or a mean, so that its shape fits."""
    for call in _calls(site, *_REDUCTIONS):
        if any(k.arg == "axis" for k in call.keywords) and not any(
            k.arg == "keepdims" for k in call.keywords
        ):
            edits = site.source.add_argument(call, "keepdims=True")
            yield Proposal("Keep the axis: `keepdims=True`.", edits)


def by_label(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    for node in [n for n in site.nodes(ast.Attribute, near=False) if n.attr == "iloc"]:
        end = site.source.span(node)[1]
        yield Proposal("`iloc` takes positions; `loc` takes labels.", [Edit(end - 4, end, "loc")])

"""Mistakes in code: names, keys, calls, places, syntax."""

from __future__ import annotations

import ast
import builtins
import random
import re
from collections.abc import Iterator

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
    span,
    swap,
    typo,
)

# Names


@kind("{right}")
def name_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Name):
        if isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            wrong = typo(node.id, chance)
            yield swap(of, place, node, wrong, node.id)


@kind("{right}")
def name_case(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Name):
        if isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            wrong = node.id.capitalize() if node.id.islower() else node.id.lower()
            yield swap(of, place, node, wrong, node.id)


@kind("{right}")
def name_stale(of: Working, chance: random.Random) -> Plants:
    """A name is another one where it is made, and the cells below still have the old one."""
    others = ("data", "frame", "values_2", "temp", "my_{}", "{}_new", "{}_clean")
    for place, text in enumerate(of.cells[:-1]):
        for name in bound_in(text):
            if any(reads(later, name) for later in of.cells[place + 1 :]):
                new = chance.choice(others).format(name)
                yield plant(of, place, renamed(text, name, new), name, new)


@kind("{right}")
def name_misspelt_where_made(of: Working, chance: random.Random) -> Plants:
    for place, text in enumerate(of.cells[:-1]):
        for name in bound_in(text):
            if len(name) > 3 and any(reads(later, name) for later in of.cells[place + 1 :]):
                wrong = typo(name, chance)
                yield plant(of, place, renamed(text, name, wrong), name, wrong)


@kind("{right}", r"\bimport\b")
def missing_import(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Import, ast.ImportFrom):
        alias = node.names[0]
        if len(node.names) == 1 and node.col_offset == 0:
            lines = of.cells[place].split("\n")
            del lines[node.lineno - 1]
            yield plant(
                of,
                place,
                "\n".join(lines).strip("\n") or "pass",
                alias.asname or alias.name,
                source(of, place, node),
            )


@kind("{right}", r"no module named")
def module_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Import, ast.ImportFrom):
        name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        wrong = typo(name, chance)
        line = source(of, place, node)
        yield swap(of, place, node, line.replace(name, wrong, 1), name, wrong=wrong)


@kind("{right}")
def imported_name_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.ImportFrom):
        name = chance.choice(node.names).name
        wrong = typo(name, chance)
        line = re.sub(
            rf"\b{name}\b(?!.*\b{name}\b)",
            wrong if f"as {name}" in source(of, place, node) else f"{wrong} as {name}",
            source(of, place, node),
        )
        yield swap(of, place, node, line, name, wrong=wrong)


@kind(
    "shadow", r"{wrong}.{{0,60}}(is (now )?an?|assigned|overwr|redefin|defined|rebound|hides)", r"del {wrong}"
)
def shadowed_builtin(of: Working, chance: random.Random) -> Plants:
    """A variable of an earlier cell has the name of a builtin that a later cell calls."""
    for place, node in nodes(of, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in vars(builtins) and name != "print":
            for earlier in range(place):
                for variable in bound_in(of.cells[earlier]):
                    if (
                        f"{name}(" not in of.cells[earlier]
                        and f"def {variable}" not in of.text
                        and f"class {variable}" not in of.text
                    ):
                        cells = tuple(
                            renamed(text, variable, name) if i >= earlier else text
                            for i, text in enumerate(of.cells)
                        )
                        yield plant(of, earlier, cells, name, variable)


@kind(
    "shadow",
    r"{wrong}.{{0,60}}(is (now )?an?|assigned|overwr|redefin|rebound|hides|no longer)",
    r"import .*{wrong}",
)
def shadowed_module(of: Working, chance: random.Random) -> Plants:
    for at, node in nodes(of, ast.Import):
        module = node.names[0].asname or node.names[0].name
        for place in range(at, len(of.cells) - 1):
            if any(reads(text, module) for text in of.cells[place + 1 :]):
                for variable in bound_in(of.cells[place]):
                    if not re.search(rf"(def|class) {variable}\b", of.text):
                        cells = tuple(
                            renamed(text, variable, module) if i >= place else text
                            for i, text in enumerate(of.cells)
                        )
                        yield plant(of, place, cells, module, variable)


# Columns, keys, attributes, files


@kind("{right}")
def column_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if is_table(of) else ():
        wrong = typo(node.value, chance)
        yield swap(of, place, node, quoted(wrong), node.value)


@kind("{right}")
def column_case(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if is_table(of) else ():
        wrong = chance.choice([node.value.title(), node.value.upper(), node.value.swapcase()])
        yield swap(of, place, node, quoted(wrong), node.value)


@kind("{right}")
def column_blank(of: Working, chance: random.Random) -> Plants:
    """A column has a blank where the code has an underscore, or the other way round, or one at its end."""
    for place, node in columns(of) if is_table(of) else ():
        name = node.value
        ways = [
            name.replace("_", " "),
            name.replace("_", "").replace(" ", ""),
            f"{name} ",
            name.replace(" ", "_"),
        ]
        wrong = chance.choice([way for way in ways if way != name])
        yield swap(of, place, node, quoted(wrong), name)


@kind("{right}")
def column_header_differs(of: Working, chance: random.Random) -> Plants:
    """The file's header has the column in other letters than the code."""
    for file, text in of.files.items():
        first, _, rest = text.partition("\n")
        sep = ";" if ";" in first else ","
        names = first.split(sep)
        if not file.endswith(".csv"):
            continue
        for i, name in enumerate(names):
            for new in (name.replace("_", " ").title(), f" {name}", name.upper(), f"{name}s"):
                header = sep.join([*names[:i], new, *names[i + 1 :]])
                cells = next((n for n, cell in enumerate(of.cells) if file in cell), 0)
                reference = tuple(cell.replace(quoted(name), quoted(new)) for cell in of.cells)
                if new != name:
                    files = {**of.files, file: f"{header}\n{rest}"}
                    yield plant(of, cells, of.cells, name, new, files=files, reference=reference)


@kind("{right}", "rename")
def column_stale(of: Working, chance: random.Random) -> Plants:
    """A cell renames a column, and a later one still has the old name."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is None:
            continue
        new = chance.choice([f"{node.value}_clean", node.value.upper(), f"total_{node.value}", "value_1"])
        extra = f'{frame} = {frame}.rename(columns={{"{node.value}": "{new}"}})'
        cells = (*of.cells[:place], extra, *of.cells[place:])
        said = [cell.replace(quoted(node.value), quoted(new)) for cell in of.cells[place:]]
        yield plant(of, place, cells, node.value, new, reference=(*of.cells[:place], extra, *said))


@kind("{right}", r"drop")
def column_dropped(of: Working, chance: random.Random) -> Plants:
    """A cell drops a column that a later one reads."""
    for place, node in columns(of) if of.library == "pandas" else ():
        frame = next((n for n in bound_in(of.cells[place - 1]) if place and reads(of.cells[place], n)), None)
        if frame is not None:
            extra = f'{frame} = {frame}.drop(columns="{node.value}")'
            yield plant(of, place, (*of.cells[:place], extra, *of.cells[place:]), node.value, extra)


@kind("{right}")
def key_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if not is_table(of) else ():
        wrong = typo(node.value, chance)
        yield swap(of, place, node, quoted(wrong), node.value)


@kind("{right}")
def key_case(of: Working, chance: random.Random) -> Plants:
    for place, node in columns(of) if not is_table(of) else ():
        wrong = chance.choice([node.value.title(), node.value.upper()])
        yield swap(of, place, node, quoted(wrong), node.value)


@kind("{right}")
def attribute_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        if isinstance(node.ctx, ast.Load) and len(node.attr) > 2:
            wrong = typo(node.attr, chance)
            yield swap(
                of,
                place,
                node,
                f"{source(of, place, node)[: -len(node.attr)]}{wrong}",
                node.attr,
                wrong=wrong,
            )


@kind("{right}")
def attribute_other_words(of: Working, chance: random.Random) -> Plants:
    """A method has the name that it has in another language or library."""
    other = {
        "upper": "toUpperCase", "lower": "to_lower", "append": "push", "strip": "trim", "items": "entries", "mean": "avg",
        "replace": "replaceAll", "startswith": "startsWith", "sort_values": "order_by", "groupby": "group_by", "join": "concat",
        "group_by": "groupby", "reset_index": "resetIndex", "to_numpy": "toarray", "value_counts": "count_values",
        "drop": "remove", "merge": "left_join", "split": "tokenize", "fillna": "fill_na", "set_title": "title",
        "set_xlabel": "xlabel", "set_ylabel": "ylabel", "rename": "rename_columns", "shape": "size_", "read_csv": "load_csv",
        "sum": "total", "filter": "where", "title": "capitalizeWords", "max": "maximum", "min": "minimum", "std": "stdev",
    }  # fmt: skip
    for place, node in nodes(of, ast.Attribute):
        if node.attr in other:
            wrong = other[node.attr]
            yield swap(
                of,
                place,
                node,
                f"{source(of, place, node)[: -len(node.attr)]}{wrong}",
                node.attr,
                wrong=wrong,
            )


@kind(r"len\(", r"{right}", "shape")
def length_as_attribute(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            inner = source(of, place, node.args[0])
            wrong = chance.choice(["length", "len()", "length()"])
            if re.fullmatch(r"[\w.\[\]\"]+", inner):
                yield swap(of, place, node, f"{inner}.{wrong}", "len", wrong=wrong)


@kind("{right}")
def file_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Constant):
        if node.value in of.files:
            stem, _, ending = node.value.rpartition(".")
            wrong = chance.choice(
                [f"{typo(stem, chance)}.{ending}", f"{stem.title()}.{ending}", f"{stem}.{ending}x", stem]
            )
            yield swap(of, place, node, quoted(wrong), node.value)


@kind("{right}")
def file_elsewhere(of: Working, chance: random.Random) -> Plants:
    """The file lies in a folder below, or the code names a folder that is not there."""
    for place, node in nodes(of, ast.Constant):
        if node.value in of.files:
            moved = {name: text for name, text in of.files.items() if name != node.value}
            moved[f"data/{node.value}"] = of.files[node.value]
            yield plant(of, place, of.cells, node.value, f"data/{node.value}", files=moved)
            yield swap(of, place, node, quoted(f"data/{node.value}"), node.value)
            yield swap(of, place, node, quoted(f"../{node.value}"), node.value)


# Calls


@kind("{right}")
def argument_misspelt(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        for keyword in node.keywords:
            if keyword.arg and len(keyword.arg) > 1:
                wrong, text = typo(keyword.arg, chance), source(of, place, keyword)
                yield swap(of, place, keyword, wrong + text[len(keyword.arg) :], keyword.arg, wrong=wrong)


@kind("{right}")
def argument_other_words(of: Working, chance: random.Random) -> Plants:
    other = {
        "axis": "dim", "ascending": "reverse", "reverse": "descending", "by": "column", "figsize": "size", "color": "colour",
        "label": "name", "index_col": "index", "sep": "separator", "inplace": "in_place", "columns": "column", "window": "size",
        "max_iter": "iterations", "n_clusters": "k", "test_size": "test", "dtype": "type", "key": "by", "orient": "orientation",
        "on": "key", "how": "type", "drop": "delete", "ignore_index": "reset_index", "freq": "frequency", "marker": "markers",
        "random_state": "seed", "format": "fmt", "periods": "n", "values": "value", "loc": "position", "width": "bar_width",
        "keepdims": "keep_dims", "descending": "ascending_", "size": "shape", "var_name": "variable", "encoding": "charset",
    }  # fmt: skip
    for place, node in nodes(of, ast.Call):
        for keyword in node.keywords:
            if keyword.arg in other:
                wrong, text = other[keyword.arg], source(of, place, keyword)
                yield swap(of, place, keyword, wrong + text[len(keyword.arg) :], keyword.arg, wrong=wrong)


@kind("order", "swap", "{right}")
def arguments_swapped(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
            told = [source(of, place, a) for a in (*node.args, *node.keywords)]
            told[0], told[1] = told[1], told[0]
            yield plant(
                of, place, call_with(of, place, node, told), f"{told[0]}, {told[1]}", f"{told[1]}, {told[0]}"
            )


@kind("{right}", "keyword", "by name", "positional")
def positional_for_keyword(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if node.keywords and node.keywords[0].arg and not any(isinstance(a, ast.Starred) for a in node.args):
            told = [source(of, place, a) for a in node.args]
            first = source(of, place, node.keywords[0].value)
            rest = [source(of, place, k) for k in node.keywords[1:]]
            yield plant(
                of,
                place,
                call_with(of, place, node, [*told, first, *rest]),
                first,
                f"{node.keywords[0].arg}=",
            )


@kind(r"required|missing \d|\bmissing\b.{{0,20}}argument")
def argument_missing(of: Working, chance: random.Random) -> Plants:
    """A required argument is missing; what it was cannot be known."""
    for place, node in nodes(of, ast.Call):
        if node.args and len(node.args) > 1:
            told = [source(of, place, a) for a in (*node.args[1:], *node.keywords)]
            yield plant(
                of, place, call_with(of, place, node, told), "", source(of, place, node.args[0]), lost=True
            )


@kind(r"\(\)", "parenthes", "not called|call it")
def call_parentheses_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if not node.args and not node.keywords:
            name = source(of, place, node.func)
            yield swap(of, place, node, name, f"{name}()")


@kind("parenthes", "round bracket", "{right}")
def call_in_square_brackets(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if len(node.args) == 1 and not node.keywords:
            name, argument = source(of, place, node.func), source(of, place, node.args[0])
            if not isinstance(node.args[0], ast.GeneratorExp):
                yield swap(of, place, node, f"{name}[{argument}]", f"{name}(", wrong=f"{name}[")


@kind("square", "{right}")
def index_in_parentheses(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.ctx, ast.Load) and not re.search(r":|\.\.\.", source(of, place, node.slice)):
            name, inner = source(of, place, node.value), source(of, place, node.slice)
            yield swap(of, place, node, f"{name}({inner})", f"{name}[", wrong=f"{name}(")


@kind("return", never="finds nothing|missing key")
def return_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.FunctionDef):
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
        if len(returns) == 1:
            yield swap(of, place, returns[0], source(of, place, returns[0].value), "return", wrong="None")


@kind("self")
def self_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.ClassDef):
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            first, rest = method.args.args[0], method.args.args[1:]
            text = of.cells[place]
            start, end = span(text, first)[0], span(text, rest[0])[0] if rest else span(text, first)[1]
            yield plant(of, place, text[:start] + text[end:], "", "self")
            for inner in ast.walk(method):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id == "self"
                    and isinstance(inner.ctx, ast.Load)
                ):
                    yield swap(of, place, inner, inner.attr, f"self.{inner.attr}")


@kind("await")
def await_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Await):
        yield swap(of, place, node, source(of, place, node.value), "await", wrong="")


# Operators and masks


@kind("parenthes", r"\) [&|] \(")
def mask_without_parentheses(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.BinOp):
        if isinstance(node.op, ast.BitAnd | ast.BitOr) and isinstance(node.left, ast.Compare):
            sign = "&" if isinstance(node.op, ast.BitAnd) else "|"
            bare = f"{source(of, place, node.left)} {sign} {source(of, place, node.right)}"
            yield swap(of, place, node, bare, "parentheses")


@kind(r"[&|]", "any|all")
def and_for_mask(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.BinOp):
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            sign, word = ("&", "and") if isinstance(node.op, ast.BitAnd) else ("|", "or")
            text = put(
                of, place, node, re.sub(rf"\) {re.escape(sign)} \(", f") {word} (", source(of, place, node))
            )
            yield plant(of, place, text, word, sign)


@kind("~")
def not_for_mask(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            yield swap(of, place, node, f"not {source(of, place, node.operand)}", "~", wrong="not")


@kind(r"\[\[", r"\bsort_values|list of|{right}")
def columns_without_list(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.slice, ast.List) and is_table(of):
            yield swap(of, place, node.slice, source(of, place, node.slice)[1:-1], "[[", wrong="[")


@kind(r"str\(", "text", 'f"', "convert")
def text_plus_number(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
            yield swap(of, place, node, source(of, place, node.args[0]), "str", wrong="")


@kind(r"int\(|float\(|convert|astype|integer|text")
def number_as_text(of: Working, chance: random.Random) -> Plants:
    """A text that has to be made a number is not."""
    for place, node in nodes(of, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float") and node.args:
            yield swap(of, place, node, source(of, place, node.args[0]), node.func.id, wrong="")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            yield swap(of, place, node, source(of, place, node.func.value), "astype", wrong="")


@kind("str", "text", "join")
def numbers_joined(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "map"
            and len(node.args) == 2
            and source(of, place, node.args[0]) == "str"
        ):
            yield swap(of, place, node, source(of, place, node.args[1]), "str", wrong="")


@kind(r"==", "compar", "assign")
def equals_once(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Compare):
        if isinstance(node.ops[0], ast.Eq):
            yield swap(of, place, node, source(of, place, node).replace("==", "=", 1), "==", wrong="=")


@kind(r"\.items\(\)")
def items_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.For, ast.comprehension):
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "items":
            yield swap(of, place, call, source(of, place, call.func.value), ".items()", wrong="")


@kind("unpack", "values", "targets")
def unpacked_into_too_many(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            bare = [source(of, place, one) for one in target.elts]
            yield swap(of, place, target, ", ".join([*bare, "rest"]), ", ".join(bare), wrong="rest")


# Places and shapes


@kind(r"last|only \d|positions? 0|0 to|ends? at|range\(|{right}")
def off_by_one(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            for inner in [node.slice, *getattr(node.slice, "elts", [])]:
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
                    wrong, right = source(of, place, inner.left), source(of, place, inner)
                    yield swap(of, place, inner, wrong, right)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and len(node.args) == 1
        ):
            right = source(of, place, node.args[0])
            if re.match(r"len\(.*\) - 1$", right):
                yield swap(of, place, node.args[0], right[:-4], right)
            elif not right.isdigit():
                yield swap(of, place, node.args[0], f"{right} + 1", right)


@kind("axis", "{right}")
def wrong_axis(of: Working, chance: random.Random) -> Plants:
    other = {"0": "1", "1": "0", '"columns"': '"index"', '"index"': '"columns"'}
    for place, node in nodes(of, ast.keyword):
        text = source(of, place, node.value)
        if node.arg == "axis" and text in other:
            yield swap(of, place, node.value, other[text], f"axis={text}", wrong=f"axis={other[text]}")
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int):
                yield swap(of, place, node.value, "2", f"axis={text}", wrong="axis=2")


@kind("2-?D|two|dimension|reshape|\\[\\[|column")
def one_dimension_too_few(of: Working, chance: random.Random) -> Plants:
    """A table of one column is a column, an array lacks its reshape."""
    for place, node in nodes(of, ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.List) and len(node.slice.elts) == 1:
            yield swap(of, place, node.slice, source(of, place, node.slice.elts[0]), "[[", wrong="[")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "reshape"
        ):
            yield swap(of, place, node, source(of, place, node.func.value), "reshape", wrong="")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.List):
            inner = node.args[0].elts
            if len(inner) == 1 and isinstance(inner[0], ast.List):
                yield swap(of, place, node.args[0], source(of, place, inner[0]), "[[", wrong="[")


@kind("shape|reshape|dimension|broadcast|elements|length")
def wrong_shape(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "reshape"
            and all(isinstance(a, ast.Constant) for a in node.args)
        ):
            told = [source(of, place, a) for a in node.args]
            wrong = [str(int(told[0]) + 1), *told[1:]]
            yield plant(of, place, call_with(of, place, node, wrong), ", ".join(wrong), ", ".join(told))


@kind("array|list")
def list_for_array(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Call):
        if source(of, place, node.func) in ("np.array", "np.asarray", "pd.Series") and node.args:
            yield swap(
                of, place, node, source(of, place, node.args[0]), source(of, place, node.func), wrong="list"
            )


@kind("int|position|index|number")
def text_as_index(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and not is_table(of):
            wrong = f'"{node.slice.value}"'
            yield swap(of, place, node.slice, wrong, str(node.slice.value))


@kind("{right}", "label", "position", "i?loc")
def loc_for_iloc(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        if node.attr in ("loc", "iloc"):
            wrong = "iloc" if node.attr == "loc" else "loc"
            yield swap(of, place, node, f"{source(of, place, node.value)}.{wrong}", node.attr, wrong=wrong)


@kind(r"\.{right}", "{right}")
def accessor_missing(of: Working, chance: random.Random) -> Plants:
    for place, node in nodes(of, ast.Attribute):
        inner = node.value
        if isinstance(inner, ast.Attribute) and inner.attr in ("str", "dt", "cat"):
            yield swap(of, place, inner, source(of, place, inner.value), inner.attr, wrong=node.attr)


# Syntax


def _without(of: Working, pattern: str) -> Iterator[tuple[int, str, re.Match[str]]]:
    for place, text in enumerate(of.cells):
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield place, text[: match.start()] + text[match.end() :], match


@kind("comma")
def comma_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r",(?= \S)"):
        yield plant(of, place, text, "", ",")


@kind("colon|'{right}'")
def colon_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r"(?<=[\w)\]]):$"):
        yield plant(of, place, text, "", ":")


@kind("quot|string|text")
def quote_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, _ in _without(of, r"\"(?=[),\]])"):
        yield plant(of, place, text, "", '"')


@kind("bracket|parenthes|closed|closing")
def bracket_missing(of: Working, chance: random.Random) -> Plants:
    for place, text, match in _without(of, r"[)\]}]$"):
        yield plant(of, place, text, "", match[0])


@kind("indent")
def indentation_lost(of: Working, chance: random.Random) -> Plants:
    for place, text in enumerate(of.cells):
        lines = text.split("\n")
        for i, line in enumerate(lines):
            if i and line.startswith("    ") and lines[i - 1].rstrip().endswith(":"):
                yield plant(of, place, "\n".join([*lines[:i], line[4:], *lines[i + 1 :]]), "", "indentation")

"""Names and arguments that libraries removed, or take by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from healkit.core.contracts.patches import Edit
from healkit.core.pysource.nodes import called_name
from healkit.parts.explain.facts.tables import GONE
from healkit.parts.explain.site import Proposal, Site

#: Methods of a table that take one list where people give several arguments.
_TAKE_A_LIST = frozenset(
    ("groupby", "sort_values", "drop_duplicates", "set_index", "dropna", "explode", "melt")
)
#: Functions that take one list of tables or arrays, or one shape.
_TAKE_ONE = frozenset((
    "concat", "concatenate", "vstack", "hstack", "dstack", "stack", "column_stack", "block", "zeros", "ones", "empty",
))  # fmt: skip
#: Parameters by position, of methods whose later ones have to be named.
_NAMES = {
    "drop": "labels axis index columns", "pivot": "index columns values", "sort_values": "by axis ascending",
    "fillna": "value axis", "dropna": "axis how", "drop_duplicates": "subset keep", "reset_index": "level drop",
    "sort_index": "axis level ascending", "set_index": "keys drop append", "set_axis": "labels axis", "any": "axis",
    "all": "axis", "clip": "lower upper axis", "rename": "mapper index columns", "groupby": "by level", "join": "on how",
    "merge": "right how on", "read_csv": "filepath_or_buffer sep", "concat": "objs axis", "replace": "to_replace value",
    "split": "pat n expand", "rsplit": "pat n expand", "interpolate": "method axis", "quantile": "q axis", "sum": "axis",
    "mean": "axis", "describe": "percentiles include", "resample": "rule closed label", "rolling": "window min_periods",
    "nlargest": "n columns keep", "to_csv": "path_or_buf sep", "pivot_table": "values index columns aggfunc", "ewm": "com span",
}  # fmt: skip
#: `method(argument=…)` that pandas no longer takes: what to write. `{o}` is the object, `{v}` the argument's text. `=`
#: before a name only renames the argument, and an empty text removes it.
_ARGUMENTS = {
    "fillna method": ("ffill()", "bfill()"), "to_csv line_terminator": ("=lineterminator",), "sort_values columns": ("=by",),
    "drop_duplicates cols": ("=subset",), "pivot_table rows": ("=index",), "pivot_table cols": ("=columns",),
    "read_csv error_bad_lines": ("on_bad_lines='skip'",), "read_excel sheetname": ("=sheet_name",), "apply axis": ("",),
    "date_range closed": ("=inclusive",), "to_datetime infer_datetime_format": ("",), "rename cols": ("=columns",),
    "groupby axis": ("",), "resample how": ("",), "sort_values by": ("",), "map axis": ("",), "sum axis": ("",),
    "read_csv squeeze": ("",), "read_csv date_parser": ("=date_format",), "value_counts columns": ("=subset",),
    "rank pct_rank": ("=pct",), "DataFrame column": ("=columns",), "drop column": ("=columns",), "pivot aggfunc": (), "OneHotEncoder sparse": ("=sparse_output",), "sort reverse": ("=descending",),
    "FacetGrid size": ("=height",), "PairGrid size": ("=height",), "JointGrid size": ("=height",), "lmplot size": ("=height",),
}  # fmt: skip
#: Names that numpy and pandas removed, where their messages do not say what to write.
_GONE_NAMES = {
    "in1d": "isin", "row_stack": "vstack", "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any", "product": "prod",
    "trapz": "trapezoid", "round_": "round", "bool8": "bool_", "msort": "sort", "TimeGrouper": "Grouper",
    "Int64Index": "Index", "Float64Index": "Index", "UInt64Index": "Index", "ordered_merge": "merge_ordered",
}  # fmt: skip


def _texts(nodes: Sequence[ast.expr]) -> bool:
    return all(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in nodes)


def gone_method(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match.groupdict().get("name") or site.facts.get("wanted", "").strip("`")
    source = site.source
    for node in [n for n in site.nodes(ast.Attribute) if n.attr == name][:1]:
        outer = source.parents[node]
        call = outer if isinstance(outer, ast.Call) and outer.func is node else None
        arguments = [source.segment(argument) for argument in (*call.args, *call.keywords)] if call else []
        forms = _appended(site, call) if name == "append" else GONE.get(name, ())
        for number, form in enumerate(forms):
            if ("{a})]" in form or "[{a}]" in form or "{first}" in form) and not arguments:
                continue
            rest = "".join(f", {argument}" for argument in arguments[1:])
            text = form.format(
                o=source.atom(node.value),
                a=", ".join(arguments),
                first=arguments[0] if arguments else "",
                rest=rest,
            )
            text, imported = site.with_module(text)
            whole = call if call is not None and form[-1] in ")]" else node
            reason = f"`.{name}` was removed; write `{text}`."
            yield Proposal(reason, [*source.replace(whole, text), *imported], less=0.03 * number)


def _appended(site: Site, call: ast.Call | None) -> tuple[str, ...]:
    """Return code that replaces `append`: for a row as a dict, several tables, or a table."""
    first = call.args[0] if call is not None and call.args else None
    value = site.given.get(first.id) if isinstance(first, ast.Name) else None
    if isinstance(first, ast.Dict) or isinstance(value, dict):
        return ("pd.concat([{o}, pd.DataFrame([{first}])]{rest})",)
    if isinstance(first, ast.List) or isinstance(value, list):
        rows = first.elts if isinstance(first, ast.List) else value or ()
        of_dicts = all(isinstance(entry, dict | ast.Dict) for entry in rows)
        return (f"pd.concat([{{o}}, {'pd.DataFrame({first})' if of_dicts else '*{first}'}]{{rest}})",)
    row = "pd.concat([{o}, pd.DataFrame([{first}])]{rest})"
    return GONE["append"] if value is not None else (*GONE["append"], row)


def gone_name(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write the name that the message or the release notes suggest in place of a removed numpy or pandas name."""
    name = match["wrong"].rpartition(".")[2]
    replacement = match.groupdict().get("right")
    right = replacement.removeprefix("np.") if replacement else _GONE_NAMES.get(name)
    for node in [n for n in site.nodes(ast.Attribute, near=False) if n.attr == name]:
        alias = site.source.segment(node.value)
        text = right if f"builtin `{replacement}`" in match[0] else f"{alias}.{right}"
        call = site.source.parents[node]
        if name == "asfarray" and isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords:
            edits = [*site.source.replace(node, str(text)), *site.source.add_argument(call, "dtype=float")]
            yield Proposal(f"`{alias}.{name}` was removed; it returned floats.", edits)
        elif right and name != "asfarray":
            yield Proposal(
                f"`{alias}.{name}` was removed; use `{text}`.", site.source.replace(node, str(text))
            )


def new_text(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Write the text that the message suggests in place of an old one: `'ME'` for the frequency `'M'`."""
    wrong = match["wrong"]
    for node in site.nodes(ast.Constant, near=False):
        if isinstance(node.value, str) and re.fullmatch(rf"\d*{re.escape(wrong)}", node.value):
            ends = ("", "E") if match["right"] in ("M", "Q", "Y") else ("",)
            for number, right in enumerate(f"{match['right']}{end}" for end in ends):
                text = repr(node.value.removesuffix(wrong) + right)
                yield Proposal(
                    f"{wrong!r} is now {right!r}.", site.source.replace(node, text), less=0.05 * number
                )


def gone_argument(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong, source = match["name"], site.source
    for call in site.nodes(ast.Call, near=False):
        name = called_name(call)
        argument = next((keyword for keyword in call.keywords if keyword.arg == wrong), None)
        if argument is None:
            continue
        start, end = source.span(argument)
        for form in _ARGUMENTS.get(f"{name} {wrong}", ()):
            number = 0
            if form.startswith("="):
                edits, description = [Edit(start, start + len(wrong), form[1:])], f"is `{form[1:]}` now"
            elif form.endswith("()") and isinstance(call.func, ast.Attribute):
                description = f"is a method now: `.{form}`"
                edits = [Edit(source.span(call.func)[1] - len(name), source.span(call)[1], form)]
                value = getattr(argument.value, "value", None)
                number = value not in {form[:-2], {"ffill()": "pad", "bfill()": "backfill"}.get(form)}
            elif form:
                edits, description = [Edit(start, end, form)], f"is `{form}` now"
            else:
                edits, description = [Edit(*_with_comma(site, call, argument), "")], "does not exist here"
            yield Proposal(f"`{wrong}=` of `{name}` {description}.", edits, less=0.1 * number)


def _with_comma(site: Site, call: ast.Call, given: ast.keyword) -> tuple[int, int]:
    """Return where an argument is, with the comma before it or, for the first one, after it."""
    every: list[ast.AST] = [*call.args, *call.keywords]
    at = every.index(given)
    start, end = site.source.span(given)
    if at:
        return site.source.span(every[at - 1])[1], end
    return (start, site.source.span(every[1])[0]) if len(every) > 1 else (start, end)


def named_arguments(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Name the arguments that a method takes by name only, or put them into one list."""
    source, function_names = site.source, {node.name for node in site.all(ast.FunctionDef)}
    for call in site.nodes(ast.Call):
        name = called_name(call)
        if (
            name in function_names
            or len(call.args) < 2
            or any(isinstance(argument, ast.Starred) for argument in call.args)
        ):
            continue
        start, end = source.span(call.args[0])[0], source.span(call.args[-1])[1]
        together = [Edit(start, start, "["), Edit(end, end, "]")]
        if name in _TAKE_ONE:
            yield Proposal(f"`{name}` takes one list: put the arguments into a list.", together)
        names = _NAMES.get(name, "").split()
        listed = name in _TAKE_A_LIST and _texts(call.args)
        if listed:
            yield Proposal(f"`{name}` takes one list of columns.", together)
        if len(call.args) <= len(names):
            first = 0 if name == "pivot" else 1
            places = [
                (source.span(argument)[0], which) for argument, which in zip(call.args, names, strict=False)
            ]
            edits = [Edit(at, at, f"{which}=") for at, which in places[first:]]
            quoted_names = " and ".join(f"`{which}`" for _, which in places[first:])
            yield Proposal(f"`{name}` takes {quoted_names} by name.", edits, less=0.1 * listed)

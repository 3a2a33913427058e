"""How far a patch reaches beyond the code that it replaces.

This is read off the syntax tree: nothing runs. It restricts nothing, which is the sandbox's task. It tells a person,
and the loops that ask one, what to expect. Anything that leads to an unreadable name (`getattr`, a frame, `mcp` or a
module as a value, a text as code) counts as reach itself.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from healkit.core.pysource.nodes import (
    bound_names,
    called_name,
    mcp_calls,
    parsed_or_none,
    stored_names,
    unknown_names,
)
from healkit.errors import near_misses

#: Modules that reach nothing outside of a process: numbers, texts, dates, containers, types. Modules that give other
#: values each time (`random`, `time`, `uuid`) are not included: no check sees what a patch does by chance or by date.
_PURE = frozenset(
    {
        "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "collections",
        "colorsys", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
        "graphlib", "hashlib", "heapq", "hmac", "html", "itertools", "json", "keyword", "math", "numbers", "operator",
        "pprint", "re", "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "zoneinfo",
    }
)  # fmt: skip
#: Libraries for data: what they calculate reaches nothing, their readers and writers do.
_DATA = frozenset({"numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn"})
_SHORT = {
    "np": "numpy", "pd": "pandas", "pl": "polars", "pa": "pyarrow", "plt": "matplotlib.pyplot", "dt": "datetime",
}  # fmt: skip
#: What pure modules and libraries for data lead to: modules under other names, parts that compile or load code.
_INNER = (sys.stdlib_module_names - _PURE - {"code", "errno", "select", "signal", "site", "test", "time", "trace"}) | {
    "_testing", "bltns", "compat", "core", "ctypeslib", "dataset", "distutils", "f2py", "feather", "flight", "fs",
    "hdfs", "ipc", "lib", "npyio", "orc", "parquet", "testing",
}  # fmt: skip
#: Parts of pure modules that reach what a text names, or make code.
_BY_NAME = frozenset(
    {
        "ast.main", "base64.main", "calendar.main", "functools.singledispatch", "functools.singledispatchmethod",
        "operator.attrgetter", "operator.methodcaller", "string.Formatter", "types.CodeType", "types.FunctionType",
        "types.LambdaType", "types.ModuleType", "typing.ForwardRef", "typing.get_type_hints",
    }
)  # fmt: skip
#: Builtins that reach out of the code, or around what can be read off it; `hash` and `id` differ between processes.
_BUILTINS = frozenset(
    {
        "breakpoint", "compile", "delattr", "eval", "exec", "exit", "getattr", "get_last_error", "globals", "hash",
        "help", "id", "input", "locals", "memoryview", "open", "quit", "setattr", "vars",
    }
)  # fmt: skip
#: Attributes of any object that write files or run something, read from outside, run a text as code, lead to a frame,
#: or use the clock or chance.
_WRITES = re.compile(
    r"(write|sink)_\w+|to_(clipboard|csv|excel|feather|gbq|hdf|html|json|latex|markdown|orc|parquet|pickle|sql|stata"
    r"|string|xml)|to_?file|savetxt|savez?(_compressed)?|dump|unlink|rmdir|mkdir|symlink_to|hardlink_to|system|popen"
    r"|spawn\w*|kill|fork|sendall|ExcelWriter|HDFStore"
)
_READS = re.compile(
    r"(read|scan|fetch)_\w+|from_?file|fromregex|genfromtxt|loadtxt|loadmat|memmap|memory_map|load|open\w*|urlopen"
    r"|urlretrieve|connect|ExcelFile|DataSource|OSFile|SQLContext|input_stream|output_stream"
)
_LEADS = re.compile(
    r"eval|query|exec\w*|run_path|import_module|(f|gi|cr|ag|tb|func)_(frame|globals|builtins|locals|back|code|next)"
    r"|now|today|utcnow|sample"
)
#: Writers that return a text where they are given no place to write to.
_WITHOUT_PLACE = re.compile(r"to_(csv|html|json|latex|markdown|string|xml)")
_PLACES = frozenset({"path_or_buf", "buf", "path_or_buffer", None})
#: Modules that no path may lead to, from whatever object.
_ANYWHERE = frozenset(
    {
        "asyncio", "bltns", "builtins", "codecs", "copyreg", "ctypes", "gc", "importlib", "inspect", "io", "marshal",
        "multiprocessing", "os", "pickle", "posix", "runpy", "shutil", "socket", "subprocess", "sys", "threading",
    }
)  # fmt: skip
_DUNDER = re.compile(r"__\w+__")
_USUAL_DUNDERS = frozenset(
    {
        "__name__",
        "__doc__",
        "__init__",
        "__len__",
        "__iter__",
        "__eq__",
        "__hash__",
        "__repr__",
        "__post_init__",
    }
)
#: Methods that take the name of another one.
_TAKES_NAMES = frozenset({"agg", "aggregate", "apply", "transform"})
#: With one of these in the old code, any text and any attribute may lead further.
_DYNAMIC = frozenset(
    {
        "uses mcp itself",
        "uses eval",
        "uses exec",
        "uses globals",
        "uses locals",
        "uses vars",
        "uses __import__",
    }
)
_SHOWN_CHARS = 40


def added_reach(before: str, after: str) -> tuple[str, ...]:
    """Return what the new code reaches for and the old one does not, in words, sorted; empty for nothing.

    These are calls through `mcp`, also if there are more of them; modules that can reach out of the process; builtins
    and attributes that read, write or hide. A module is not new if the old code used its name without importing it.
    """
    try:
        return tuple(sorted(_added(before, after)))
    except RecursionError:
        return ("cannot be read",)


def _added(before: str, after: str) -> set[str]:
    new_tree, old_tree = parsed_or_none(after), parsed_or_none(before)
    if new_tree is None:
        return {"cannot be read"}
    if old_tree is None:  # a draft: what its text names was meant
        words = set(re.findall(r"\w+", re.sub(r"#.*", "", before)))
        new = _Reach(new_tree, {}, known=words).found
        return {entry for entry in new if not set(re.findall(r"\w+", entry.partition(" ")[2])) <= words}
    modules = _meant(old_tree, new_tree)
    old, new_reach = _Reach(old_tree, modules), _Reach(new_tree, {}, known=modules)
    added = [
        entry for entry in new_reach.found if entry not in old.found and not _was_misspelt(entry, old.found)
    ]
    for reached, count in new_reach.found.items():
        if 0 < old.found[reached] < count and _is_counted(reached):
            added.append(f"{reached} at {count} places instead of {old.found[reached]}")
    if _DYNAMIC & old.found.keys() & new_reach.found.keys():
        added += [f"names {_cut(word)}" for word in new_reach.words - old.words]
    if old.files:
        added += [f"opens {_cut(name)}" for name in new_reach.files if not near_misses(name, old.files)]
    return set(added)


def told_reach(reach: Sequence[str]) -> str:
    """Return the line above the diff of a patch with more reach; empty if there is none."""
    return f"! Reaches further than the code it replaces: {', '.join(reach)}\n" if reach else ""


def _cut(word: str) -> str:
    return ascii(word if len(word) <= _SHOWN_CHARS else f"{word[: _SHOWN_CHARS - 1]}…")


def _is_counted(reached: str) -> bool:
    """Return True for reach that does more if it occurs in more places: it has an effect each time."""
    return (
        reached.startswith("calls mcp.")
        or reached == "uses open to write"
        or bool(_WRITES.fullmatch(reached.rpartition(".")[2]))
    )


def _was_misspelt(reached: str, old: Mapping[str, int]) -> bool:
    """Return True for a function of a module if the old code had a similar name that the module lacks."""
    module, _, name = reached.removeprefix("uses ").partition(".")
    loaded = sys.modules.get(module)
    near = [] if loaded is None else near_misses(name, (entry.rpartition(".")[2] for entry in old))
    return any(f"uses {module}.{candidate}" in old and not hasattr(loaded, candidate) for candidate in near)


def _meant(old: ast.Module, new: ast.Module) -> dict[str, str]:
    """Return the new code's imports of names that the old one used without importing them, or misspelt."""
    unknown = set(unknown_names(old))
    imported = {
        import_alias.name
        for node in ast.walk(old)
        if isinstance(node, ast.Import)
        for import_alias in node.names
    }
    misspelt = [
        module_name
        for module_name in imported
        if module_name.partition(".")[0] not in sys.stdlib_module_names | _DATA
    ]
    modules: dict[str, str] = {}
    for node in ast.walk(new):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name, top = alias.asname or alias.name.partition(".")[0], alias.name.partition(".")[0]
                if name in unknown and (alias.name == _SHORT.get(name) or name == top):
                    modules[name] = alias.name if alias.asname else top
                elif alias.asname is None and (wrong := near_misses(alias.name, misspelt)):
                    modules |= dict.fromkeys((*wrong, alias.name), alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if alias.name in unknown and alias.asname in (None, alias.name):
                    modules[alias.name] = f"{node.module}.{alias.name}"
    return modules


class _Reach:
    """Reach of a code, in words, with the number of occurrences.

    words: Its attributes and texts.
    files: The texts that it opens.
    known: Names whose import is not new.
    """

    def __init__(self, tree: ast.Module, modules: Mapping[str, str], known: Container[str] = ()) -> None:
        self.found: Counter[str] = Counter()
        self.words: set[str] = set()
        self.files: set[str] = set()
        self._known = known
        self._modules: dict[str, str] = {}
        self._whole: set[str] = set()  # names of modules, and not of what is in them
        self._returning: set[ast.Attribute] = set()  # writers that return a text
        #: Names of modules that are names of something else too.
        self._unsure = {
            *stored_names(tree),
            *(argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)),
        }
        for node in ast.walk(tree):
            self._import(node)
        self._modules.update(modules)
        self.found.update(f"calls mcp.{name}" if name else "uses mcp itself" for name in mcp_calls(tree))
        self._visit(tree, frozenset())

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                name, module = (alias.asname, alias.name) if alias.asname else (top, top)
                self._name_module(name, module)
                self._whole.add(name)
                if name not in self._known:
                    self._module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = f"{'.' * node.level}{node.module or ''}"
            for alias in node.names:
                self._name_module(alias.asname or alias.name, f"{module}.{alias.name}")
                if alias.name not in self._known:
                    self._module(module)
                    self._dotted(f"{module}.{alias.name}")

    def _name_module(self, name: str, module: str) -> None:
        if self._modules.setdefault(name, module) != module:
            self._unsure.add(name)

    def _module(self, module: str) -> None:
        top = module.partition(".")[0]
        if top not in _PURE:
            self.found[f"imports {top}"] += 1
        self._dotted(module)

    def _dotted(self, path: str) -> None:
        """Count the reach of a path from a module: `random._os.system`."""
        top, *parts = path.split(".")
        strange = any(
            part in _INNER or part == "*" or (part.startswith("_") and part not in _USUAL_DUNDERS)
            for part in parts
        )
        if parts and (strange or path in _BY_NAME):
            self.found[f"uses {path}"] += 1
        elif parts and top not in _PURE | _DATA:
            self.found[f"uses {top}.{parts[0]}"] += 1

    def _visit(self, node: ast.AST, local: frozenset[str]) -> None:
        """Visit a node.

        local: The names around it that are not builtins, because a function binds them.
        """
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                outside = {
                    name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names
                }
                inner = local | (
                    bound_names(node).keys() - bound_names(node, "comprehension").keys() - outside
                )
                body = node.body if isinstance(node.body, list) else [node.body]
                for child in ast.iter_child_nodes(node):
                    self._visit(child, inner if child in body else local)
                return
            case ast.ClassDef():
                inner = local - bound_names(node).keys()
                for child in ast.iter_child_nodes(node):
                    self._visit(child, inner if child in node.body else local)
                return
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._visit(node.generators[0].iter, local)
                local |= {name for generator in node.generators for name in stored_names(generator.target)}
            case ast.Attribute():
                self._attribute(node)
                while isinstance(node, ast.Attribute):
                    node = node.value
                if isinstance(node, ast.Name) and node.id in self._modules:
                    return  # the module's name alone does not use it
                self._visit(node, local)
                return
            case ast.Name(id=name):
                self._name(name, local)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    self._part(name)
            case ast.Call():
                self._call(node, local)
            case ast.Constant(value=str(text)):
                self.words.add(text)
                for name in _DUNDER.findall(text):
                    if name not in _USUAL_DUNDERS:
                        self.found[f"names {name}"] += 1
        for child in ast.iter_child_nodes(node):
            self._visit(child, local)

    def _name(self, name: str, local: frozenset[str]) -> None:
        if name in local or (name in self._modules and name not in self._whole):
            return
        if name in _BUILTINS or (_DUNDER.fullmatch(name) and name not in _USUAL_DUNDERS):
            self.found[f"uses {name}"] += 1
        elif name in self._whole and self._modules[name].partition(".")[0] not in _PURE | _DATA:
            self.found[f"uses {self._modules[name]} itself"] += 1

    def _attribute(self, node: ast.Attribute) -> None:
        parts = [node.attr]
        owner = node.value
        while isinstance(owner, ast.Attribute):
            parts.append(owner.attr)
            owner = owner.value
        parts.reverse()
        self.words.update(parts)
        if isinstance(owner, ast.Name) and (module := self._modules.get(owner.id)) is not None:
            self._dotted(".".join([module, *parts]))
            pure = module.partition(".")[0] in _PURE and owner.id not in self._unsure
            if pure and len(parts) == 1 and parts[0] not in ("now", "today", "utcnow"):
                return  # json.load, math.exp
        for part in parts[:-1] if node in self._returning else parts:
            self._part(part)

    def _part(self, name: str) -> None:
        """Count an attribute of any object."""
        if (
            (_DUNDER.fullmatch(name) and name not in _USUAL_DUNDERS)
            or name.lstrip("_") in _ANYWHERE
            or _WRITES.fullmatch(name)
            or _READS.fullmatch(name)
            or _LEADS.fullmatch(name)
        ):
            self.found[f"uses .{name}"] += 1

    def _call(self, node: ast.Call, local: frozenset[str]) -> None:
        func = node.func
        name = called_name(node)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        placed = bool(node.args) or bool(keywords.keys() & _PLACES)
        if isinstance(func, ast.Attribute) and _WITHOUT_PLACE.fullmatch(name) and not placed:
            self._returning.add(func)
        if name == "open" or _READS.fullmatch(name):
            texts = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
            self.files.update(text for text in texts if isinstance(text, str))
        if name == "open" and name not in local:
            at = 1 if isinstance(func, ast.Name) else 0
            modes = [*node.args[at : at + 1], *(keywords[key] for key in ("mode", None) if key in keywords)]
            if any(
                not isinstance(mode, ast.Constant) or set("wax+") & set(str(mode.value)) for mode in modes
            ):
                self.found["uses open to write"] += 1
        if name in _TAKES_NAMES or name == "getattr":
            for part in (
                child for argument in [*node.args, *keywords.values()] for child in ast.walk(argument)
            ):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self._part(part.value)
                elif name != "getattr" and isinstance(part, ast.JoinedStr | ast.BinOp) and part in node.args:
                    self.found[f"uses .{name} with a name that it makes"] += 1

"""Modules and names that are missing or not imported."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from healkit.core.pysource.nodes import unknown_names
from healkit.errors import near_misses
from healkit.parts.explain.facts.values import PACKAGES, SAME
from healkit.parts.explain.site import Proposal, Propose, Site

CLASSES_OF_DATETIME = ("datetime", "date", "timedelta", "timezone", "time")


def import_for(name: str) -> str | None:
    """Return the line that imports a well-known name, None for any other."""
    if name in ALIASES:
        return ALIASES[name]
    if name in HOMES:
        return f"from {HOMES[name]} import {name}"
    return f"import {name}" if name in MODULES else None


def _missing_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    name = match["name"]
    lines = [import_for(name)]
    if name == "datetime":  # both are common; how it is used tells
        used = {n.attr for n in attributes_of(site, name)}
        lines = ["import datetime", "from datetime import datetime"]
        lines = lines if used & set(CLASSES_OF_DATETIME) else lines[::-1]
    elif name in MODULES and name in HOMES and attributes_of(site, name):
        lines = [f"import {name}", f"from {HOMES[name]} import {name}"]
    here = {name, *FOREIGN_NAMES, *site.given}
    missing_imports = {n: import_for(n) for n in unknown_names(site.source.tree) if n not in here}
    if lines[0] and (more := [line for line in missing_imports.values() if line]):
        every = site.source.newline.join(sorted([lines[0], *more]))
        yield Proposal("Several names are used but never imported.", site.add_import(every), less=-0.01)
    for number, line in enumerate(filter(None, lines)):
        reason = f"`{name}` is used but never imported: `{line}` is added."
        yield Proposal(reason, site.add_import(line or ""), less=0.1 * number)


def attributes_of(site: Site, name: str) -> list[ast.Attribute]:
    return [
        node for node in site.all(ast.Attribute) if isinstance(node.value, ast.Name) and node.value.id == name
    ]


def _misspelt_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong, _, rest = match["name"].partition(".")
    if site.statement is None or not isinstance(site.statement, ast.Import | ast.ImportFrom):
        return
    if wrong in PACKAGES or wrong in SAME:  # the name is right, and its package is not installed
        return
    near = site.near(wrong, [*MODULES, *sys.stdlib_module_names])
    for number, right in enumerate(name for name in near if name != wrong and not name.startswith("_")):
        edits = site.source.replace_all(site.uses(wrong), right)
        start, end = site.source.span(site.statement)
        text = re.sub(rf"\b{re.escape(wrong)}\b", right, site.source.text[start:end])
        reason = f"There is no module `{wrong}`; `{right}` is imported instead."
        yield Proposal(reason, [*edits, *site.source.replace(site.statement, text)], less=0.1 * number)
    if rest and wrong in sys.stdlib_module_names:
        text = site.source.segment(site.statement).replace(match["name"], wrong)
        yield Proposal(
            f"`{wrong}` is not a package; import the module itself.",
            site.source.replace(site.statement, text),
        )


def _name_in_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong, module = match["name"], match["module"]
    statement = site.statement
    if not isinstance(statement, ast.ImportFrom):
        return
    alias = next((alias for alias in statement.names if alias.name == wrong), None)
    if alias is None:
        return
    for number, right in enumerate(site.near(wrong)):
        if f"{module}.{wrong}" in MOVED or HOMES.get(wrong, module) != module:
            break
        edits = site.source.replace(alias, right + (f" as {alias.asname}" if alias.asname else ""))
        if alias.asname is None:
            edits += site.source.replace_all(site.uses(wrong), right)
        yield Proposal(f"`{module}` has no `{wrong}`; it has `{right}`.", edits, less=0.1 * number)
    home = MOVED.get(f"{module}.{wrong}", "").rpartition(".")[0] or HOMES.get(wrong, module)
    if home != module and len(statement.names) == 1:
        new_name = MOVED.get(f"{module}.{wrong}", wrong).rpartition(".")[2]
        text = f"from {home} import {new_name}" + ("" if new_name == wrong else f" as {wrong}")
        yield Proposal(f"`{wrong}` is in `{home}`, not in `{module}`.", site.source.replace(statement, text))


def _whole_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Import a module by itself that was once part of another one."""
    facts = site.failure.facts if site.failure is not None else {}
    statement, instead = site.statement, facts.get("instead", "").strip("`")
    if isinstance(statement, ast.ImportFrom) and len(statement.names) == 1 and instead.startswith("import "):
        alias = f" as {statement.names[0].asname}" if statement.names[0].asname else ""
        yield Proposal(
            f"It is a module of its own: `{instead}`.", site.source.replace(statement, instead + alias)
        )


def _without_its_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Put the module before a function of an imported module: `findall(…)` beside `import re`."""
    name = match["name"]
    for node in site.source.tree.body:
        if not isinstance(node, ast.Import):
            continue
        for alias in node.names:
            module = sys.modules.get(alias.name)
            if (
                module is not None
                and name in getattr(module, "__all__", dir(module))
                and not name.startswith("_")
            ):
                edits = site.source.replace_all(site.uses(name), f"{alias.asname or alias.name}.{name}")
                yield Proposal(f"`{name}` needs the name of its module, `{alias.name}`.", edits)


def _misspelt_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Correct and import a well-known name that is misspelt: `defaultdic`."""
    name = match["name"]
    if len(name) < 5 or name in HOMES or site.near(name, site.names()):
        return
    for right in near_misses(name, HOMES, 1):
        edits = [
            *site.source.replace_all(site.uses(name), right),
            *site.add_import(f"from {HOMES[right]} import {right}"),
        ]
        yield Proposal(f"`{name}` is not defined; `{right}` is in `{HOMES[right]}`.", edits)


# Attributes of a module that are elsewhere


def _class_of_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Ask the class, not its module: `import datetime` and then `datetime.now()`."""
    name, attribute = match["module"], match["name"]
    if not hasattr(getattr(sys.modules.get(name), name, None), attribute):
        return
    wrong = [node for node in attributes_of(site, name) if node.attr == attribute]
    edits = site.source.replace_all((node.value for node in wrong), f"{name}.{name}")
    if edits:
        yield Proposal(f"`{attribute}` belongs to the class `{name}.{name}`, not to the module.", edits)


def _module_of_class(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the sibling class: `from datetime import datetime` and then `datetime.timedelta(…)`."""
    attribute = match["name"]
    if attribute not in CLASSES_OF_DATETIME:
        return
    statement = next(
        (n for n in site.source.tree.body if isinstance(n, ast.ImportFrom) and n.module == "datetime"), None
    )
    if statement is None:
        return
    names = [alias.name for alias in statement.names]
    wrong = [n for n in attributes_of(site, "datetime") if n.attr in CLASSES_OF_DATETIME and n.attr != "time"]
    edits = [edit for node in wrong for edit in site.source.replace(node, node.attr)]
    more = [name for name in dict.fromkeys(node.attr for node in wrong) if name not in names]
    if more:
        edits += site.source.replace(statement, f"from datetime import {', '.join(names + more)}")
    if edits:
        yield Proposal("`datetime` is the class here; import the module's other classes separately.", edits)


def _moved(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    module, name = match["module"], match["name"]
    right = MOVED.get(f"{module}.{name}")
    if right is None:
        return
    home = right.rpartition(".")[0]
    wrong = [node for node in attributes_of(site, module) if node.attr == name]
    edits = site.source.replace_all(wrong, right)
    if home == "str":  # string.upper(text) is str.upper(text), and nothing else changes
        home = ""
    if edits and home and home != module:
        edits += site.add_import(f"import {home}")
    if edits:
        yield Proposal(f"`{module}.{name}` does not exist; use `{right}`.", edits)


def _submodule(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Import the part of a package that is used: `import xml` does not import `xml.etree`."""
    module, name = match["module"], match["name"]
    package = Path(os.__file__).parent.joinpath(*module.split("."))
    if module.partition(".")[0] not in sys.stdlib_module_names or not package.is_dir():
        return
    if package.joinpath(f"{name}.py").is_file() or package.joinpath(name, "__init__.py").is_file():
        full = "xml.etree.ElementTree" if (module, name) == ("xml", "etree") else f"{module}.{name}"
        yield Proposal(
            f"`{full}` is a submodule and must be imported.",
            site.add_import(f"import {full}"),
        )


# Well-known names, and what other languages call them


#: Modules that are used by their own name; without those that are imported by accident (`this`, `antigravity`).
MODULES = frozenset((
    "abc", "argparse", "array", "ast", "asyncio", "base64", "binascii", "bisect", "calendar", "cmath", "codecs",
    "collections", "colorsys", "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime",
    "decimal", "difflib", "enum", "errno", "fnmatch", "fractions", "functools", "gc", "getpass", "glob", "gzip",
    "hashlib", "heapq", "hmac", "html", "http", "inspect", "io", "ipaddress", "itertools", "json", "keyword",
    "locale", "logging", "math", "mimetypes", "operator", "os", "pathlib", "pickle", "platform", "pprint",
    "queue", "random", "re", "secrets", "shlex", "shutil", "signal", "socket", "sqlite3", "ssl", "stat",
    "statistics", "string", "struct", "subprocess", "sys", "tempfile", "textwrap", "threading", "time",
    "timeit", "tokenize", "traceback", "types", "typing", "unicodedata", "unittest", "urllib", "uuid",
    "warnings", "weakref", "xml", "zipfile", "zlib", "zoneinfo", "numpy", "pandas", "scipy", "matplotlib",
    "seaborn", "sklearn", "requests", "sympy", "networkx",
))  # fmt: skip

#: Usual abbreviations of modules.
ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl",
    "sns": "import seaborn as sns",
    "sp": "import scipy as sp",
    "nx": "import networkx as nx",
    "dt": "import datetime as dt",
    "et": "import xml.etree.ElementTree as et",
    "ET": "import xml.etree.ElementTree as ET",
    "tf": "import tensorflow as tf",
    "sk": "import sklearn as sk",
}

_HOMES = {
    "collections": "Counter defaultdict OrderedDict deque namedtuple ChainMap",
    "collections.abc": "Callable Hashable Iterable Iterator Mapping MutableMapping MutableSequence Sequence Sized",
    "typing": "Any Dict List Optional Tuple Union Set FrozenSet Type NamedTuple TypedDict Literal Protocol TypeVar Generic",
    "dataclasses": "dataclass field asdict astuple",
    "datetime": "datetime timedelta date timezone",
    "decimal": "Decimal ROUND_HALF_UP ROUND_DOWN getcontext",
    "enum": "Enum IntEnum auto",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache wraps cmp_to_key total_ordering cached_property cache",
    "itertools": "chain combinations permutations product accumulate groupby islice zip_longest cycle count repeat "
    "takewhile dropwhile starmap pairwise tee combinations_with_replacement",
    "math": "sqrt ceil floor pi gcd factorial log log2 log10 sin cos tan isclose hypot inf prod comb perm lcm exp atan2 "
    "radians degrees isnan isqrt fabs trunc nan fsum",
    "statistics": "mean median mode stdev variance pstdev pvariance multimode fmean",
    "operator": "itemgetter attrgetter methodcaller",
    "heapq": "heappush heappop heapify nlargest nsmallest heappushpop",
    "bisect": "bisect bisect_left bisect_right insort",
    "pathlib": "Path PurePath",
    "random": "randint choice shuffle sample uniform randrange seed choices",
    "copy": "deepcopy",
    "re": "findall finditer fullmatch",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation Template",
    "contextlib": "contextmanager suppress closing",
    "textwrap": "dedent wrap shorten",
    "abc": "ABC abstractmethod",
    "io": "StringIO BytesIO",
    "json": "JSONDecodeError loads dumps",
    "time": "sleep perf_counter",
    "types": "SimpleNamespace",
    "urllib.parse": "urlencode urlparse quote unquote urljoin parse_qs quote_plus unquote_plus",
    "zoneinfo": "ZoneInfo",
    "uuid": "uuid4",
    "pprint": "pprint pformat",
    "hashlib": "sha256 md5 sha1",
    "unicodedata": "normalize",
    "difflib": "SequenceMatcher get_close_matches",
    "csv": "DictReader DictWriter",
    "numbers": "Number",
}
#: Where a name is imported from, for names that mean one thing to most people.
HOMES = {name: module for module, names in _HOMES.items() for name in names.split()}

#: Names of other languages and of Python 2 → Python's name.
FOREIGN_NAMES = {
    "true": "True", "false": "False", "TRUE": "True", "FALSE": "False", "null": "None", "NULL": "None", "nil": "None",
    "none": "None", "undefined": "None", "xrange": "range", "unicode": "str", "raw_input": "input", "long": "int",
    "basestring": "str", "unichr": "chr", "izip": "zip", "imap": "map", "ifilter": "filter", "this": "self",
    "println": "print", "printf": "print", "echo": "print", "strlen": "len", "length": "len", "size": "len",
    "sizeof": "len", "string": "str", "String": "str", "integer": "int", "Integer": "int", "Int": "int",
    "parseInt": "int", "parseFloat": "float", "boolean": "bool", "Boolean": "bool", "Array": "list", "array": "list",
    "maximum": "max", "minimum": "min", "double": "float", "char": "chr", "Exeption": "Exception",
    "Error": "Exception", "StandardError": "Exception", "absolute": "abs", "PI": "3.141592653589793",
}  # fmt: skip

#: Functions and classes that are elsewhere, or renamed: `module.name` → what to write.
MOVED = {
    "time.clock": "time.perf_counter", "string.letters": "string.ascii_letters", "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase", "string.maketrans": "str.maketrans", "itertools.izip": "zip",
    "itertools.imap": "map", "itertools.ifilter": "filter", "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd", "os.errno": "errno", "inspect.getargspec": "inspect.getfullargspec", "math.abs": "abs", "math.max": "max",
    "math.min": "min", "math.round": "round", "math.sum": "sum", "math.mean": "statistics.mean",
    "math.average": "statistics.mean", "math.median": "statistics.median", "math.PI": "math.pi", "math.E": "math.e",
    "math.power": "math.pow", "math.ceiling": "math.ceil", "random.rand": "random.random",
    "random.random_int": "random.randint", "random.integer": "random.randint", "json.parse": "json.loads",
    "json.stringify": "json.dumps", "json.decode": "json.loads", "json.encode": "json.dumps", "re.replace": "re.sub",
    "statistics.average": "statistics.mean", "statistics.avg": "statistics.mean", "statistics.std": "statistics.stdev",
    "collections.Mapping": "collections.abc.Mapping", "collections.Iterable": "collections.abc.Iterable",
    "collections.Sequence": "collections.abc.Sequence", "collections.Callable": "collections.abc.Callable",
    "collections.MutableMapping": "collections.abc.MutableMapping", "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.quote": "urllib.parse.quote", "urllib.unquote": "urllib.parse.unquote",
    "asyncio.async": "asyncio.ensure_future", "functools.map": "map", "functools.filter": "filter",
    "operator.div": "operator.truediv", "string.upper": "str.upper",
    "string.lower": "str.lower", "string.split": "str.split", "string.strip": "str.strip",
    "string.replace": "str.replace", "datetime.now": "datetime.datetime.now",
    "base64.encodestring": "base64.encodebytes", "base64.decodestring": "base64.decodebytes",
}  # fmt: skip

#: Methods of other languages: name → what to write for `{o}.name({a})`; `{0}` is the first argument.
FOREIGN_METHODS = {
    "push": ("{o}.append({a})",), "push_back": ("{o}.append({a})",), "add": ("{o}.append({a})",),
    "append": ("{o}.add({a})", "{o} + {0}"), "contains": ("{0} in {o}",), "includes": ("{0} in {o}",),
    "has": ("{0} in {o}",), "has_key": ("{0} in {o}",), "hasOwnProperty": ("{0} in {o}",), "containsKey": ("{0} in {o}",),
    "iteritems": ("{o}.items()",), "itervalues": ("{o}.values()",), "iterkeys": ("{o}.keys()",),
    "toLowerCase": ("{o}.lower()",), "toUpperCase": ("{o}.upper()",), "lowercase": ("{o}.lower()",),
    "uppercase": ("{o}.upper()",), "to_lower": ("{o}.lower()",), "to_upper": ("{o}.upper()",), "tolower": ("{o}.lower()",),
    "toupper": ("{o}.upper()",), "downcase": ("{o}.lower()",), "upcase": ("{o}.upper()",), "trim": ("{o}.strip()",),
    "trimStart": ("{o}.lstrip()",), "trimEnd": ("{o}.rstrip()",), "chomp": ("{o}.rstrip()",), "length": ("len({o})",),
    "len": ("len({o})",), "size": ("len({o})",), "count": ("len({o})",), "isEmpty": ("not {o}",), "is_empty": ("not {o}",),
    "empty": ("not {o}",), "indexOf": ("{o}.index({a})", "{o}.find({a})"), "index_of": ("{o}.index({a})",),
    "lastIndexOf": ("{o}.rfind({a})",), "find": ("{o}.index({a})",), "charAt": ("{o}[{0}]",), "get": ("{o}[{0}]",), "at": ("{o}[{0}]",),
    "substring": ("{o}[{0}:{1}]", "{o}[{0}:]"), "substr": ("{o}[{0}:{1}]", "{o}[{0}:]"), "slice": ("{o}[{0}:{1}]", "{o}[{0}:]"),
    "startsWith": ("{o}.startswith({a})",), "endsWith": ("{o}.endswith({a})",), "starts_with": ("{o}.startswith({a})",),
    "ends_with": ("{o}.endswith({a})",), "replaceAll": ("{o}.replace({a})",), "gsub": ("{o}.replace({a})",),
    "toString": ("str({o})",), "to_s": ("str({o})",), "to_i": ("int({o})",), "to_string": ("str({o})",), "equals": ("{o} == {0}",),
    "concat": ("{o} + {0}",), "addAll": ("{o}.extend({a})",), "push_all": ("{o}.extend({a})",), "unshift": ("{o}.insert(0, {a})",),
    "shift": ("{o}.pop(0)",), "first": ("{o}[0]",), "last": ("{o}[-1]",), "reverse": ("{o}[::-1]",), "reversed": ("{o}[::-1]",),
    "sort": ("sorted({o})",), "sorted": ("sorted({o})",), "sum": ("sum({o})",), "max": ("max({o})",), "min": ("min({o})",),
    "mean": ("sum({o}) / len({o})",), "average": ("sum({o}) / len({o})",), "sqrt": ("{o} ** 0.5",), "join": ("{0}.join({o})",),
    "map": ("map({0}, {o})",), "filter": ("filter({0}, {o})",), "keySet": ("{o}.keys()",), "entries": ("{o}.items()",),
    "delete": ("{o}.remove({a})",), "removeAt": ("{o}.pop({a})",), "abs": ("abs({o})",),
    "round": ("round({o})",), "isnumeric": ("str({o}).isnumeric()",), "isdigit": ("str({o}).isdigit()",), "lower": ("str({o}).lower()", ),
    "upper": ("str({o}).upper()",), "strip": ("str({o}).strip()",), "decode": ("{o}",), "encode": ("{o}",), "items": ("enumerate({o})",),
    "discard": ("{o}.remove({a})",), "update": ("{o}.extend({a})",), "extend": ("{o}.update({a})",),
    "unique": ("list(set({o}))",), "flatten": ("sum({o}, [])",),
}  # fmt: skip


#: By the names of their rows.
FIXES: dict[str, Propose] = {
    "misspelt_module": _misspelt_module,
    "name_in_module": _name_in_module,
    "whole_import": _whole_import,
    "missing_import": _missing_import,
    "without_its_module": _without_its_module,
    "misspelt_import": _misspelt_import,
    "class_of_module": _class_of_module,
    "moved": _moved,
    "submodule": _submodule,
    "module_of_class": _module_of_class,
}

"""Import lines for names that a cell lacks.

Many module names are ordinary variable names in notebooks (`code`, `test`, `string`). So the way in which the cell uses
the name decides: of a module it reads an attribute that the module has, a class or function it calls.

The table is short on purpose: the larger one of the rules for tools is part of their advisor, which takes longer to
load than a card may take.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from healkit.cells.cell_source import read_cell
from healkit.cells.dataflow import dataflow_of

#: Conventional aliases in notebooks.
ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "mpl": "import matplotlib as mpl",
    "sns": "import seaborn as sns",
    "px": "import plotly.express as px",
    "tf": "import tensorflow as tf",
    "nx": "import networkx as nx",
    "sp": "import scipy as sp",
    "dt": "import datetime as dt",
    "ET": "import xml.etree.ElementTree as ET",
}
MODULES = frozenset(
    {"numpy", "pandas", "scipy", "matplotlib", "seaborn", "sklearn", "requests", "sympy", "networkx", "torch"}
)
_HOMES = {
    "collections": "Counter defaultdict OrderedDict deque namedtuple ChainMap",
    "dataclasses": "dataclass asdict",
    "datetime": "datetime timedelta date timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum",
    "fractions": "Fraction",
    "functools": "reduce partial lru_cache",
    "io": "StringIO BytesIO",
    "itertools": "chain combinations permutations product accumulate groupby islice zip_longest",
    "math": "sqrt ceil floor pi inf factorial log log10 sin cos tan exp",
    "operator": "itemgetter attrgetter",
    "pathlib": "Path",
    "pprint": "pprint",
    "random": "randint choice shuffle uniform",
    "copy": "deepcopy",
    "statistics": "mean median stdev",
    "time": "sleep perf_counter",
    "types": "SimpleNamespace",
    "typing": "Any Callable Dict List Optional Tuple Union Literal NamedTuple",
    "urllib.request": "urlopen",
}
HOMES = {name: module for module, names in _HOMES.items() for name in names.split()}
#: Names of `HOMES` that are plain values, which a cell reads without calling them.
_VALUES = frozenset({"pi", "inf"})
_SOURCE_MAX_BYTES = 2_000_000


def import_for(name: str, source: str) -> str | None:
    """Return the line that imports a name, if the cell uses it like the usual thing of that name; else None."""
    uses = set(_uses(name, source))
    attributes = {use for use in uses if use not in {"()", ""}}
    if name in ALIASES:
        return ALIASES[name] if attributes or not uses else None
    if name in HOMES:
        home = HOMES[name]
        if name in MODULES and attributes and all(has_attribute(name, one) for one in attributes):
            return f"import {name}"
        called = "()" in uses or name in _VALUES or (name[:1].isupper() and bool(uses))
        if called or (attributes and name[:1].isupper()) or name == "datetime":
            return f"from {home} import {name}"
        return None
    if (name in MODULES or name in sys.stdlib_module_names) and attributes and uses == attributes:
        return f"import {name}" if all(has_attribute(name, one) for one in attributes) else None
    return None


def installed(line: str) -> bool:
    """Return whether the module of an import line is installed; imports nothing."""
    tree = ast.parse(line).body[0]
    assert isinstance(tree, ast.Import | ast.ImportFrom)
    module = tree.module if isinstance(tree, ast.ImportFrom) else tree.names[0].name
    root = (module or "").partition(".")[0]
    try:
        return root in sys.modules or importlib.util.find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _uses(name: str, source: str) -> Iterator[str]:
    """Yield how a cell uses a name: `()` for a call, an attribute's name, or an empty text."""
    tree = read_cell(source).tree
    for node in ast.walk(tree) if tree is not None else ():
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Load):
                if isinstance(node, ast.Attribute):
                    yield node.attr
                else:
                    yield "()" if isinstance(node, ast.Call) and node.func is child else ""


def has_attribute(module: str, attribute: str) -> bool:
    """Return whether a module has an attribute, as far as its source tells; imports nothing."""
    if (loaded := sys.modules.get(module)) is not None:
        return attribute in vars(loaded)
    try:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return spec is not None
        file = Path(spec.origin)
        if file.stat().st_size > _SOURCE_MAX_BYTES:
            return True
        flow = dataflow_of(file.read_text("utf-8"))
    except (ImportError, ValueError, AttributeError, OSError):
        return False
    return attribute in flow.bound or bool(flow.star_imports) or "__getattr__" in flow.bound

"""Modules that were not imported, or not so."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from healkit.contracts.healing import Edit
from healkit.errors import near_misses
from healkit.healing.rules.known import ALIASES, FOREIGN_NAMES, HOMES, MODULES, MOVED
from healkit.healing.rules.records import Example, Fix, Rule
from healkit.healing.rules.sites import Site
from healkit.pysource.scope import unknown_names

_CLASSES_OF_DATETIME = ("datetime", "date", "timedelta", "timezone", "time")


def import_for(name: str) -> str | None:
    """The line that brings a name in, for names that everybody imports from the same place."""
    if name in ALIASES:
        return ALIASES[name]
    if name in HOMES:
        return f"from {HOMES[name]} import {name}"
    return f"import {name}" if name in MODULES else None


def _missing(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    name = match["name"]
    lines = [import_for(name)]
    if name == "datetime":  # both are common; how it is used tells
        used = {n.attr for n in _attributes_of(site, name)}
        lines = ["import datetime", "from datetime import datetime"]
        lines = lines if used & set(_CLASSES_OF_DATETIME) else lines[::-1]
    elif name in MODULES and name in HOMES and _attributes_of(site, name):
        lines = [f"import {name}", f"from {HOMES[name]} import {name}"]
    others = {
        n: import_for(n) for n in unknown_names(site.source.tree) if n != name and n not in FOREIGN_NAMES
    }
    if lines[0] and (more := [line for line in others.values() if line]):
        every = site.source.newline.join(sorted([lines[0], *more]))
        yield Fix("Several names are used and never imported.", site.source.add_import(every), less=-0.01)
    for number, line in enumerate(filter(None, lines)):
        reason = f"`{name}` is used and never imported: `{line}` is added."
        yield Fix(reason, site.source.add_import(line or ""), less=0.1 * number)


def _attributes_of(site: Site, name: str) -> list[ast.Attribute]:
    return [
        node
        for node in ast.walk(site.source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]


def _misspelt_module(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    wrong, _, rest = match["name"].partition(".")
    if site.statement is None or not isinstance(site.statement, ast.Import | ast.ImportFrom):
        return
    near = site.near(wrong, [*MODULES, *sys.stdlib_module_names])
    for number, right in enumerate(name for name in near if name != wrong and not name.startswith("_")):
        nodes: list[ast.AST] = [
            n for n in ast.walk(site.source.tree) if isinstance(n, ast.Name) and n.id == wrong
        ]
        edits = [edit for node in nodes for edit in site.source.replace(node, right)]
        start, end = site.source.span(site.statement)
        text = re.sub(rf"\b{re.escape(wrong)}\b", right, site.source.text[start:end])
        reason = f"There is no module `{wrong}`; `{right}` is imported instead."
        yield Fix(reason, [*edits, *site.source.replace(site.statement, text)], less=0.1 * number)
    if rest and wrong in sys.stdlib_module_names:
        text = site.source.segment(site.statement).replace(match["name"], wrong)
        yield Fix(
            f"`{wrong}` is no package; it is imported whole.", site.source.replace(site.statement, text)
        )


def _name_in_module(site: Site, match: re.Match[str]) -> Iterator[Fix]:
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
            edits += _renamed(site, wrong, right)
        yield Fix(f"`{module}` has no `{wrong}`; it has `{right}`.", edits, less=0.1 * number)
    home = MOVED.get(f"{module}.{wrong}", "").rpartition(".")[0] or HOMES.get(wrong, module)
    if home != module and len(statement.names) == 1:
        found = MOVED.get(f"{module}.{wrong}", wrong).rpartition(".")[2]
        text = f"from {home} import {found}" + ("" if found == wrong else f" as {wrong}")
        yield Fix(f"`{wrong}` is in `{home}`, not in `{module}`.", site.source.replace(statement, text))


def _renamed(site: Site, wrong: str, right: str) -> list[Edit]:
    names = (n for n in ast.walk(site.source.tree) if isinstance(n, ast.Name) and n.id == wrong)
    return [edit for node in names for edit in site.source.replace(node, right)]


def _class_of_module(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`import datetime` and then `datetime.now()`; the same for any module with a class of its name."""
    name, attribute = match["module"], match["name"]
    if not hasattr(getattr(sys.modules.get(name), name, None), attribute):
        return
    wrong = [node for node in _attributes_of(site, name) if node.attr == attribute]
    edits = [edit for node in wrong for edit in site.source.replace(node.value, f"{name}.{name}")]
    if edits:
        yield Fix(f"`{attribute}` belongs to the class `{name}.{name}`, not to the module.", edits)


def _module_of_class(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`from datetime import datetime` and then `datetime.datetime.now()` or `datetime.timedelta(…)`."""
    attribute = match["name"]
    if attribute not in _CLASSES_OF_DATETIME:
        return
    statement = next(
        (n for n in site.source.tree.body if isinstance(n, ast.ImportFrom) and n.module == "datetime"), None
    )
    if statement is None:
        return
    names = [alias.name for alias in statement.names]
    wrong = [
        n for n in _attributes_of(site, "datetime") if n.attr in _CLASSES_OF_DATETIME and n.attr != "time"
    ]
    edits = [edit for node in wrong for edit in site.source.replace(node, node.attr)]
    more = [name for name in dict.fromkeys(node.attr for node in wrong) if name not in names]
    if more:
        edits += site.source.replace(statement, f"from datetime import {', '.join(names + more)}")
    if edits:
        yield Fix("`datetime` is the class here, and the other classes of the module stand beside it.", edits)


def _moved(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    module, name = match["module"], match["name"]
    right = MOVED.get(f"{module}.{name}")
    if right is None:
        return
    home = right.rpartition(".")[0]
    wrong = [node for node in _attributes_of(site, module) if node.attr == name]
    edits = [edit for node in wrong for edit in site.source.replace(node, right)]
    if home == "str":  # string.upper(text) is str.upper(text), and nothing else changes
        home = ""
    if edits and home and home != module:
        edits += site.source.add_import(f"import {home}")
    if edits:
        yield Fix(f"There is no `{module}.{name}`; it is `{right}`.", edits)


def _submodule(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """`import xml` and then `xml.etree`: a package does not bring its parts along."""
    module, name = match["module"], match["name"]
    package = Path(os.__file__).parent.joinpath(*module.split("."))
    if module.partition(".")[0] not in sys.stdlib_module_names or not package.is_dir():
        return
    if package.joinpath(f"{name}.py").is_file() or package.joinpath(name, "__init__.py").is_file():
        full = "xml.etree.ElementTree" if (module, name) == ("xml", "etree") else f"{module}.{name}"
        yield Fix(
            f"`{full}` is a module of its own and must be imported.",
            site.source.add_import(f"import {full}"),
        )


def _not_imported_from(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A method's name called without its module, where the module is imported: `findall(…)` beside `import re`."""
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
                edits = _renamed(site, name, f"{alias.asname or alias.name}.{name}")
                yield Fix(f"`{name}` is called without its module `{alias.name}`.", edits)


def _near_home(site: Site, match: re.Match[str]) -> Iterator[Fix]:
    """A misspelt name that must be imported as well is left to two rounds; this only knows `defaultdic`."""
    name = match["name"]
    if len(name) < 5 or name in HOMES or site.near(name, site.names()):
        return
    for right in near_misses(name, HOMES, 1):
        edits = [
            *_renamed(site, name, right),
            *site.source.add_import(f"from {HOMES[right]} import {right}"),
        ]
        yield Fix(f"`{name}` is nothing; `{right}` is in `{HOMES[right]}`.", edits)


_NAME = r"^name '(?P<name>\w+)' is not defined"
_ATTRIBUTE = r"^module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"
_NOTHING = Example("def tool(a):\n    return zzyzx(a)\n", arguments={"a": 1})

RULES: tuple[Rule, ...] = (
    Rule(
        name="missing_import",
        mends="a module or a well-known name is used and not imported",
        enames=("NameError",),
        message=_NAME,
        priority=0.95,
        propose=_missing,
        example=Example(
            '"""Count."""\n\nfrom __future__ import annotations\n\n\ndef tool(a):\n    return dict(Counter(a))  # all\n',
            '"""Count."""\n\nfrom __future__ import annotations\n\nfrom collections import Counter\n\n\n'
            "def tool(a):\n    return dict(Counter(a))  # all\n",
            {"a": "aab"},
        ),
        lookalike=_NOTHING,
    ),
    Rule(
        name="misspelt_module",
        mends="a module's name is misspelt",
        enames=("ModuleNotFoundError",),
        message=r"^No module named '(?P<name>[\w.]+)'",
        priority=0.9,
        propose=_misspelt_module,
        example=Example(
            "import ramdom\n\n\ndef tool(a):\n    return ramdom.Random(a).randint(1, 1)\n",
            "import random\n\n\ndef tool(a):\n    return random.Random(a).randint(1, 1)\n",
            {"a": 1},
        ),
        lookalike=Example("import zzyzx_not_there\n\n\ndef tool(a):\n    return a\n", arguments={"a": 1}),
    ),
    Rule(
        name="name_in_module",
        mends="a name is imported that the module does not have",
        enames=("ImportError",),
        message=r"^cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
        priority=0.9,
        propose=_name_in_module,
        example=Example(
            "from math import mean\n\n\ndef tool(a):\n    return mean(a)\n",
            "from statistics import mean\n\n\ndef tool(a):\n    return mean(a)\n",
            {"a": [1, 3]},
        ),
        lookalike=Example("from math import zzyzx\n\n\ndef tool(a):\n    return a\n", arguments={"a": 1}),
    ),
    Rule(
        name="class_of_module",
        mends="the module is asked for what its class of the same name has",
        enames=("AttributeError",),
        message=_ATTRIBUTE,
        priority=0.9,
        propose=_class_of_module,
        example=Example(
            "import datetime\n\n\ndef tool(a):\n    return datetime.fromisoformat(a).year\n",
            "import datetime\n\n\ndef tool(a):\n    return datetime.datetime.fromisoformat(a).year\n",
            {"a": "2025-01-01"},
        ),
        lookalike=Example("import math\n\n\ndef tool(a):\n    return math.zzyzx(a)\n", arguments={"a": 1}),
    ),
    Rule(
        name="module_of_class",
        mends="the class `datetime` is asked for what stands beside it in its module",
        enames=("AttributeError",),
        message=r"type object 'datetime\.datetime' has no attribute '(?P<name>\w+)'",
        priority=0.9,
        propose=_module_of_class,
        example=Example(
            "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.timedelta(a).days\n",
            "from datetime import datetime, timedelta\n\n\ndef tool(a):\n    return timedelta(a).days\n",
            {"a": 2},
        ),
        lookalike=Example(
            "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.zzyzx(a)\n",
            arguments={"a": 1},
        ),
    ),
    Rule(
        name="moved",
        mends="a function is asked of the wrong module, or by an old or foreign name",
        enames=("AttributeError",),
        message=_ATTRIBUTE,
        priority=0.9,
        propose=_moved,
        example=Example(
            "import json\n\n\ndef tool(a):\n    return json.parse(a)\n",
            "import json\n\n\ndef tool(a):\n    return json.loads(a)\n",
            {"a": "[1]"},
        ),
        lookalike=Example("import json\n\n\ndef tool(a):\n    return json.zzyzx(a)\n", arguments={"a": "1"}),
    ),
    Rule(
        name="submodule",
        mends="a package's part is used and not imported",
        enames=("AttributeError",),
        message=_ATTRIBUTE,
        priority=0.85,
        propose=_submodule,
        example=Example(
            "import dbm\n\n\ndef tool():\n    return issubclass(dbm.dumb.error, OSError)\n",
            "import dbm.dumb\nimport dbm\n\n\ndef tool():\n    return issubclass(dbm.dumb.error, OSError)\n",
        ),
        lookalike=Example(
            "import json\n\n\ndef tool(a):\n    return json.zzyzx.x(a)\n", arguments={"a": "1"}
        ),
    ),
    Rule(
        name="without_its_module",
        mends="a module's function is called without the module's name",
        enames=("NameError",),
        message=_NAME,
        priority=0.93,
        propose=_not_imported_from,
        example=Example(
            "import math\n\n\ndef tool(a):\n    return cosh(a)\n",
            "import math\n\n\ndef tool(a):\n    return math.cosh(a)\n",
            {"a": 0},
        ),
        lookalike=Example("import math\n\n\ndef tool(a):\n    return zzyzx(a)\n", arguments={"a": 1}),
    ),
    Rule(
        name="misspelt_import",
        mends="a well-known name is misspelt and not imported either",
        enames=("NameError",),
        message=_NAME,
        priority=0.6,
        propose=_near_home,
        example=Example(
            "def tool(a):\n    return dict(defaultdcit(int, a))\n",
            "from collections import defaultdict\n\n\ndef tool(a):\n    return dict(defaultdict(int, a))\n",
            {"a": {"b": 1}},
        ),
        lookalike=_NOTHING,
    ),
)

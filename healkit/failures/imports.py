"""Modules and names that are missing or not imported."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from healkit.contracts.healing import Edit
from healkit.errors import near_misses
from healkit.facts.packages import PACKAGES, SAME
from healkit.failures.known_names import ALIASES, FOREIGN_NAMES, HOMES, MODULES, MOVED
from healkit.failures.pattern import ExplanationText, FailurePattern, Fix, FixExample, Proposal
from healkit.failures.site import Site
from healkit.pysource.scope import unknown_names

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
    others = {
        n: import_for(n) for n in unknown_names(site.source.tree) if n != name and n not in FOREIGN_NAMES
    }
    if lines[0] and (more := [line for line in others.values() if line]):
        every = site.source.newline.join(sorted([lines[0], *more]))
        yield Proposal(
            "Several names are used but never imported.", site.source.add_import(every), less=-0.01
        )
    for number, line in enumerate(filter(None, lines)):
        reason = f"`{name}` is used but never imported: `{line}` is added."
        yield Proposal(reason, site.source.add_import(line or ""), less=0.1 * number)


def attributes_of(site: Site, name: str) -> list[ast.Attribute]:
    return [
        node
        for node in ast.walk(site.source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]


def _misspelt_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    wrong, _, rest = match["name"].partition(".")
    if site.statement is None or not isinstance(site.statement, ast.Import | ast.ImportFrom):
        return
    if wrong in PACKAGES or wrong in SAME:  # the name is right, and its package is not installed
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
            edits += _renamed(site, wrong, right)
        yield Proposal(f"`{module}` has no `{wrong}`; it has `{right}`.", edits, less=0.1 * number)
    home = MOVED.get(f"{module}.{wrong}", "").rpartition(".")[0] or HOMES.get(wrong, module)
    if home != module and len(statement.names) == 1:
        found = MOVED.get(f"{module}.{wrong}", wrong).rpartition(".")[2]
        text = f"from {home} import {found}" + ("" if found == wrong else f" as {wrong}")
        yield Proposal(f"`{wrong}` is in `{home}`, not in `{module}`.", site.source.replace(statement, text))


def _renamed(site: Site, wrong: str, right: str) -> list[Edit]:
    names = (n for n in ast.walk(site.source.tree) if isinstance(n, ast.Name) and n.id == wrong)
    return [edit for node in names for edit in site.source.replace(node, right)]


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
                edits = _renamed(site, name, f"{alias.asname or alias.name}.{name}")
                yield Proposal(f"`{name}` needs the name of its module, `{alias.name}`.", edits)


def _misspelt_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Correct and import a well-known name that is misspelt: `defaultdic`."""
    name = match["name"]
    if len(name) < 5 or name in HOMES or site.near(name, site.names()):
        return
    for right in near_misses(name, HOMES, 1):
        edits = [
            *_renamed(site, name, right),
            *site.source.add_import(f"from {HOMES[right]} import {right}"),
        ]
        yield Proposal(f"`{name}` is not defined; `{right}` is in `{HOMES[right]}`.", edits)


_NOTHING = FixExample("def tool(a):\n    return zzyzx(a)\n", arguments={"a": 1})


#: For names that are not defined; `names` has their pattern.
MISSING_IMPORTS: tuple[Fix, ...] = (
    Fix(
        name="missing_import",
        mistake="a module or a well-known name that is not imported",
        priority=0.95,
        propose=_missing_import,
        example=FixExample(
            '"""Count."""\n\nfrom __future__ import annotations\n\n\ndef tool(a):\n    return dict(Counter(a))  # all\n',
            '"""Count."""\n\nfrom __future__ import annotations\n\nfrom collections import Counter\n\n\n'
            "def tool(a):\n    return dict(Counter(a))  # all\n",
            {"a": "aab"},
        ),
        lookalike=_NOTHING,
    ),
    Fix(
        name="without_its_module",
        mistake="a function of a module that is called without the module name",
        priority=0.93,
        propose=_without_its_module,
        example=FixExample(
            "import math\n\n\ndef tool(a):\n    return cosh(a)\n",
            "import math\n\n\ndef tool(a):\n    return math.cosh(a)\n",
            {"a": 0},
        ),
        lookalike=FixExample("import math\n\n\ndef tool(a):\n    return zzyzx(a)\n", arguments={"a": 1}),
    ),
    Fix(
        name="misspelt_import",
        mistake="a well-known name that is misspelt and not imported",
        priority=0.6,
        propose=_misspelt_import,
        example=FixExample(
            "def tool(a):\n    return dict(defaultdcit(int, a))\n",
            "from collections import defaultdict\n\n\ndef tool(a):\n    return dict(defaultdict(int, a))\n",
            {"a": {"b": 1}},
        ),
        lookalike=_NOTHING,
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("ModuleNotFoundError",),
        r"No module named '(?P<name>[\w.]+)'",
        explanations=(
            ExplanationText(
                "module_near",
                what="There is no module named `{name}`.",
                why="The standard library has a module with a similar name: {near}.",
                hint="Compare the spelling.",
                fix="Import {near}.",
                needs="near",
                example="import ramdom",
            ),
            ExplanationText(
                "module",
                what="There is no module named `{name}`.",
                why=(
                    "It is not installed in the environment that ran this code, or its import name "
                    "differs from its package name. A tool with granted packages sees only those."
                ),
                hint="Does the same import work in a cell of this notebook?",
                fix=(
                    "Install the package with `%pip install …`; for a tool, check its grants with `%vault "
                    "grant NAME`."
                ),
                example="import zzyzx_not_there",
            ),
        ),
        fixes=(
            Fix(
                name="misspelt_module",
                mistake="a misspelt module name",
                priority=0.9,
                propose=_misspelt_module,
                example=FixExample(
                    "import ramdom\n\n\ndef tool(a):\n    return ramdom.Random(a).randint(1, 1)\n",
                    "import random\n\n\ndef tool(a):\n    return random.Random(a).randint(1, 1)\n",
                    {"a": 1},
                ),
                lookalike=FixExample(
                    "import zzyzx_not_there\n\n\ndef tool(a):\n    return a\n", arguments={"a": 1}
                ),
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError", "ImportError"),
        r"partially initialized module '(?P<module>[\w.]+)'",
        explanations=(
            ExplanationText(
                "attribute_circular",
                what="The module `{module}` was used while it was still being imported.",
                why=(
                    "Two files import each other, or a file of yours is named `{module}.py` and was "
                    "imported instead."
                ),
                hint="Is there a file `{module}.py` in your folder?",
                fix="Rename your file, or move one of the two imports into the function that needs it.",
                example=(
                    "import os, sys, tempfile\nfolder = tempfile.mkdtemp()\nsys.path.insert(0, folder)\n"
                    "with open(os.path.join(folder, 'healkit_circle.py'), 'w') as f:\n"
                    "    f.write('import healkit_circle\\nhealkit_circle.x')\n"
                    "try:\n    import healkit_circle\nfinally:\n    sys.path.remove(folder)"
                ),
            ),
        ),
    ),
    FailurePattern(
        ("ImportError",),
        r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
        explanations=(
            ExplanationText(
                "import_near",
                what="`{module}` has no `{name}`.",
                why="A similar name exists: {near}.",
                hint="Compare the spelling.",
                fix="Import {near}.",
                needs="near",
                example="from math import sqrtt",
            ),
            ExplanationText(
                "import",
                what="`{module}` has no `{name}`.",
                why=(
                    "The name was moved or renamed in another version of the library, or a file of "
                    "yours named `{module}.py` was imported instead."
                ),
                hint="What does `import {module}; {module}.__file__` return?",
                fix="Look the name up in the documentation of the installed version.",
                example="from math import zzyzx",
            ),
        ),
        fixes=(
            Fix(
                name="name_in_module",
                mistake="an import of a name that the module does not have",
                priority=0.9,
                propose=_name_in_module,
                example=FixExample(
                    "from math import mean\n\n\ndef tool(a):\n    return mean(a)\n",
                    "from statistics import mean\n\n\ndef tool(a):\n    return mean(a)\n",
                    {"a": [1, 3]},
                ),
                lookalike=FixExample(
                    "from math import zzyzx\n\n\ndef tool(a):\n    return a\n", arguments={"a": 1}
                ),
            ),
        ),
    ),
)

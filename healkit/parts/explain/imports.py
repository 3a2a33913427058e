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
from healkit.parts.explain.known_names import FOREIGN_NAMES, HOMES, MODULES, MOVED, import_for
from healkit.parts.explain.site import Proposal, Site

CLASSES_OF_DATETIME = ("datetime", "date", "timedelta", "timezone", "time")


def missing_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def misspelt_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def name_in_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def whole_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Import a module directly that was once part of another one."""
    statement, instead = site.statement, site.facts.get("instead", "").strip("`")
    if isinstance(statement, ast.ImportFrom) and len(statement.names) == 1 and instead.startswith("import "):
        alias = f" as {statement.names[0].asname}" if statement.names[0].asname else ""
        yield Proposal(
            f"It is a separate module: `{instead}`.", site.source.replace(statement, instead + alias)
        )


def without_its_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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
                yield Proposal(f"`{name}` must be written with its module, `{alias.name}`.", edits)


def misspelt_import(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def class_of_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Use the class instead of its module: `import datetime` and then `datetime.now()`."""
    name, attribute = match["module"], match["name"]
    if not hasattr(getattr(sys.modules.get(name), name, None), attribute):
        return
    wrong = [node for node in attributes_of(site, name) if node.attr == attribute]
    edits = site.source.replace_all((node.value for node in wrong), f"{name}.{name}")
    if edits:
        yield Proposal(f"`{attribute}` belongs to the class `{name}.{name}`, not to the module.", edits)


def module_of_class(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def moved(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
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


def submodule(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Import the part of a package that is used: `import xml` does not import `xml.etree`."""
    module, name = match["module"], match["name"]
    package = Path(os.__file__).parent.joinpath(*module.split("."))
    if module.partition(".")[0] not in sys.stdlib_module_names or not package.is_dir():
        return
    if package.joinpath(f"{name}.py").is_file() or package.joinpath(name, "__init__.py").is_file():
        full = "xml.etree.ElementTree" if (module, name) == ("xml", "etree") else f"{module}.{name}"
        yield Proposal(f"`{full}` is a submodule and must be imported.", site.add_import(f"import {full}"))

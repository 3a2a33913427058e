"""Attributes of a module that are elsewhere."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from healkit.failures.imports import CLASSES_OF_DATETIME, attributes_of
from healkit.failures.known_names import MOVED
from healkit.failures.pattern import Fix, FixExample, Proposal
from healkit.failures.site import Site


def _class_of_module(site: Site, match: re.Match[str]) -> Iterator[Proposal]:
    """Ask the class, not its module: `import datetime` and then `datetime.now()`."""
    name, attribute = match["module"], match["name"]
    if not hasattr(getattr(sys.modules.get(name), name, None), attribute):
        return
    wrong = [node for node in attributes_of(site, name) if node.attr == attribute]
    edits = [edit for node in wrong for edit in site.source.replace(node.value, f"{name}.{name}")]
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
    edits = [edit for node in wrong for edit in site.source.replace(node, right)]
    if home == "str":  # string.upper(text) is str.upper(text), and nothing else changes
        home = ""
    if edits and home and home != module:
        edits += site.source.add_import(f"import {home}")
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
            site.source.add_import(f"import {full}"),
        )


#: For attributes that a module does not have; `attributes` has their pattern.
OTHER_MODULES: tuple[Fix, ...] = (
    Fix(
        name="class_of_module",
        mistake="a class attribute that is looked up in the module of the same name",
        only=r"^module",
        priority=0.9,
        propose=_class_of_module,
        example=FixExample(
            "import datetime\n\n\ndef tool(a):\n    return datetime.fromisoformat(a).year\n",
            "import datetime\n\n\ndef tool(a):\n    return datetime.datetime.fromisoformat(a).year\n",
            {"a": "2025-01-01"},
        ),
        lookalike=FixExample("import math\n\n\ndef tool(a):\n    return math.zzyzx(a)\n", arguments={"a": 1}),
    ),
    Fix(
        name="moved",
        mistake="a function of another module, or one with an old or foreign name",
        only=r"^module",
        priority=0.9,
        propose=_moved,
        example=FixExample(
            "import json\n\n\ndef tool(a):\n    return json.parse(a)\n",
            "import json\n\n\ndef tool(a):\n    return json.loads(a)\n",
            {"a": "[1]"},
        ),
        lookalike=FixExample(
            "import json\n\n\ndef tool(a):\n    return json.zzyzx(a)\n", arguments={"a": "1"}
        ),
    ),
    Fix(
        name="submodule",
        mistake="a submodule that is used but not imported",
        only=r"^module",
        priority=0.85,
        propose=_submodule,
        example=FixExample(
            "import dbm\n\n\ndef tool():\n    return issubclass(dbm.dumb.error, OSError)\n",
            "import dbm.dumb\nimport dbm\n\n\ndef tool():\n    return issubclass(dbm.dumb.error, OSError)\n",
        ),
        lookalike=FixExample(
            "import json\n\n\ndef tool(a):\n    return json.zzyzx.x(a)\n", arguments={"a": "1"}
        ),
    ),
)
#: For the class `datetime`, asked for its siblings.
BESIDE_THE_CLASS = Fix(
    name="module_of_class",
    mistake="a class of the module `datetime` that is looked up in the class `datetime`",
    only=r"type object 'datetime\.datetime'",
    priority=0.9,
    propose=_module_of_class,
    example=FixExample(
        "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.timedelta(a).days\n",
        "from datetime import datetime, timedelta\n\n\ndef tool(a):\n    return timedelta(a).days\n",
        {"a": 2},
    ),
    lookalike=FixExample(
        "from datetime import datetime\n\n\ndef tool(a):\n    return datetime.zzyzx(a)\n",
        arguments={"a": 1},
    ),
)

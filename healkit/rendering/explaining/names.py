"""Names, attributes and modules that are not there."""

from __future__ import annotations

import sys

from healkit.rendering.explaining.records import Rule

#: What everybody writes for modules that everybody imports.
_ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "dt": "datetime"}
_MODULES = "|".join(sorted((*_ALIASES, *(m for m in sys.stdlib_module_names if not m.startswith("_")))))

RULES: tuple[Rule, ...] = (
    Rule(
        "name_module",
        ("NameError",),
        rf"name '(?P<name>{_MODULES})' is not defined",
        "`{name}` is used here, and nothing of that name has been imported.",
        "A module must be imported before its name means anything, in every notebook and in every tool again.",
        "Which line should bring `{name}` in?",
        "Put an import of `{name}` at the top of the code.",
        example="math.sqrt(4)",
    ),
    Rule(
        "name_near",
        ("NameError",),
        r"name '(?P<name>\w+)' is not defined",
        "Nothing is called `{name}` here.",
        "Python looked for a variable, a function or a module of exactly that name. Something much like it is there: {near}.",
        "Compare the spelling letter by letter, capitals too.",
        "If {near} was meant, write that in the place of `{name}`.",
        needs="near",
        example="longest = ''\nprint(longets)",
    ),
    Rule(
        "name_quotes_or_later",
        ("NameError",),
        r"name '(?P<name>\w+)' is not defined",
        "Nothing is called `{name}` here.",
        "Either it gets its value further down, or in a cell that has not been run, or it was meant as text.",
        "Where does `{name}` get its value, and has that line been run before this one?",
        "Give `{name}` a value above this line; if it is text, write it in quotes.",
        example="print(quite_unknown_thing)",
    ),
    Rule(
        "unbound_local",
        ("UnboundLocalError",),
        r"local variable '(?P<name>\w+)'",
        "The function reads its own variable `{name}` before it has given it a value.",
        "An assignment to `{name}` anywhere in a function makes the name the function's own, everywhere in it. "
        "A variable of that name outside is then not looked at.",
        "On which way through the function is `{name}` never assigned?",
        "Assign `{name}` at the top of the function, or give the function's own variable another name.",
        example="def f(x):\n    if x:\n        y = 1\n    return y\nf(0)",
    ),
    Rule(
        "free_variable",
        ("NameError",),
        r"free variable '(?P<name>\w+)'",
        "An inner function reads `{name}` before the function around it has given it a value.",
        "The inner function does not remember a value, it looks `{name}` up when it is called.",
        "Is the inner function called too early?",
        "Assign `{name}` before the call.",
        example="def f():\n    def g():\n        return x\n    g()\n    x = 1\nf()",
    ),
    Rule(
        "attribute_of_none",
        ("AttributeError",),
        r"'NoneType' object has no attribute '(?P<name>\w+)'",
        "`.{name}` is asked of `None`, and `None` has nothing of that kind.",
        "Something that was expected to give an object gave `None`: a function without `return`, a search that found "
        "nothing, or a method that changes its object in place (`list.sort`, `list.append`) and returns nothing.",
        "Which call in this line, or above it, gave `None`?",
        "Look at what stands before `.{name}`; test it with `if … is not None:` if nothing found is a normal case.",
        example="import re\nre.match('a', 'b').group()",
    ),
    Rule(
        "attribute_circular",
        ("AttributeError", "ImportError"),
        r"partially initialized module '(?P<module>[\w.]+)'",
        "The module `{module}` is used while it is still being imported.",
        "Two files import each other, or a file of yours has the same name as `{module}` and was imported instead of it.",
        "Is there a file `{module}.py` in your folder?",
        "Rename your file, or move one of the two imports into the function that needs it.",
        example="import os, sys, tempfile\nfolder = tempfile.mkdtemp()\nsys.path.insert(0, folder)\n"
        "with open(os.path.join(folder, 'healkit_circle.py'), 'w') as f:\n"
        "    f.write('import healkit_circle\\nhealkit_circle.x')\n"
        "try:\n    import healkit_circle\nfinally:\n    sys.path.remove(folder)",
    ),
    Rule(
        "attribute_near",
        ("AttributeError",),
        r"(?:'(?P<kind>[\w.]+)' object|module '(?P<module>[\w.]+)'|type object '(?P<cls>\w+)') has no attribute '(?P<name>\w+)'",
        "{kind}{module}{cls} has no `{name}`.",
        "It has something much like it: {near}.",
        "Compare the spelling.",
        "If {near} was meant, write that in the place of `{name}`.",
        needs="near",
        example="'text'.uper()",
    ),
    Rule(
        "attribute_dict",
        ("AttributeError",),
        r"'dict' object has no attribute '(?P<name>\w+)'",
        "A dict has no attribute `{name}`.",
        "What a dict holds is found by its key in brackets. A dot asks for a method of the dict itself.",
        "Is `{name}` a key of the dict?",
        'Write `["{name}"]` in the place of `.{name}`.',
        example="{'zzyzx': 1}.zzyzx",
    ),
    Rule(
        "attribute",
        ("AttributeError",),
        r"(?:'(?P<kind>[\w.]+)' object|module '(?P<module>[\w.]+)'|type object '(?P<cls>\w+)') has no attribute '(?P<name>\w+)'",
        "{kind}{module}{cls} has no `{name}`.",
        "The value is of another kind than the line expects, or the name has changed with the library's version.",
        "What does `type(…)` say of the value before `.{name}`?",
        "Look at `dir(…)` of the value for what it has.",
        example="(3).zzyzx",
    ),
    Rule(
        "module_near",
        ("ModuleNotFoundError",),
        r"No module named '(?P<name>[\w.]+)'",
        "There is no module called `{name}`.",
        "Python itself has one whose name is much like it: {near}.",
        "Compare the spelling.",
        "Import {near}.",
        needs="near",
        example="import ramdom",
    ),
    Rule(
        "module",
        ("ModuleNotFoundError",),
        r"No module named '(?P<name>[\w.]+)'",
        "There is no module called `{name}` here.",
        "It is not installed in the environment that this code ran in, or the name under which it is imported is another "
        "than the one it is installed by. A tool whose packages are granted sees those only.",
        "Does the same import work in a cell of this notebook?",
        "Install the package with `%pip install …`; for a tool, look at its grants with `%vault grant NAME`.",
        example="import zzyzx_not_there",
    ),
    Rule(
        "import_near",
        ("ImportError",),
        r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
        "`{module}` has nothing called `{name}`.",
        "It has something much like it: {near}.",
        "Compare the spelling.",
        "Import {near}.",
        needs="near",
        example="from math import sqrtt",
    ),
    Rule(
        "import",
        ("ImportError",),
        r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
        "`{module}` has nothing called `{name}`.",
        "The name has moved or was renamed with another version of the library, or a file of yours called "
        "`{module}.py` was imported in its place.",
        "What does `import {module}; {module}.__file__` say?",
        "Look the name up in the documentation of the version that is installed.",
        example="from math import zzyzx",
    ),
)

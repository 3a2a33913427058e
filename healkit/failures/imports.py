"""Modules that are missing, misspelt or not imported."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("ModuleNotFoundError",),
        r"No module named '(?P<name>[\w.]+)'",
        explanations=(
            ExplanationText(
                "module_near",
                what="There is no module called `{name}`.",
                why="Python itself has one whose name is much like it: {near}.",
                hint="Compare the spelling.",
                fix="Import {near}.",
                needs="near",
                example="import ramdom",
            ),
            ExplanationText(
                "module",
                what="There is no module called `{name}` here.",
                why=(
                    "It is not installed in the environment that this code ran in, or the name under which it is imported is another "
                    "than the one it is installed by. A tool whose packages are granted sees those only."
                ),
                hint="Does the same import work in a cell of this notebook?",
                fix="Install the package with `%pip install …`; for a tool, look at its grants with `%vault grant NAME`.",
                example="import zzyzx_not_there",
            ),
        ),
    ),
    FailurePattern(
        ("AttributeError", "ImportError"),
        r"partially initialized module '(?P<module>[\w.]+)'",
        explanations=(
            ExplanationText(
                "attribute_circular",
                what="The module `{module}` is used while it is still being imported.",
                why="Two files import each other, or a file of yours has the same name as `{module}` and was imported instead of it.",
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
                what="`{module}` has nothing called `{name}`.",
                why="It has something much like it: {near}.",
                hint="Compare the spelling.",
                fix="Import {near}.",
                needs="near",
                example="from math import sqrtt",
            ),
            ExplanationText(
                "import",
                what="`{module}` has nothing called `{name}`.",
                why=(
                    "The name has moved or was renamed with another version of the library, or a file of yours called "
                    "`{module}.py` was imported in its place."
                ),
                hint="What does `import {module}; {module}.__file__` say?",
                fix="Look the name up in the documentation of the version that is installed.",
                example="from math import zzyzx",
            ),
        ),
    ),
)

"""Interfaces that libraries removed, as a table.

    python benchmarks/removed_interfaces.py --folder DIR
    python benchmarks/removed_interfaces.py --folder DIR --write healkit/parts/explain/facts/removed.toml

pip downloads each old version into a separate folder; the new version is the installed one. Both are imported in
separate processes, which list their public names, including inherited ones, and the parameters of each function. The
text of a stub would not show inheritance and names that are made at run time. A successor is only named if the old
version's documentation names one that the new version has. `=` before it says that it takes the same parameters in the
same order. Run it by hand when a library has a new version, and read the difference; no test runs it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

#: Packages that matplotlib needs to be imported.
_PLOTS = "contourpy cycler fonttools kiwisolver packaging pillow pyparsing python-dateutil six"
#: Package → what pip installs of the old version; the modules to compare, `.part` for one of its own.
LIBRARIES: dict[str, tuple[str, str]] = {
    "pandas": ("pandas==1.5.3 numpy==1.26.4 pytz python-dateutil six", "pandas .api.types"),
    "numpy": ("numpy==1.26.4", "numpy .linalg .random .ma"),
    "sklearn": (
        "scikit-learn==1.1.3 scipy==1.9.3 numpy==1.24.4 joblib threadpoolctl",
        """.datasets .metrics .preprocessing .model_selection .linear_model .ensemble .tree .svm .cluster .decomposition
        .feature_extraction.text .feature_selection .impute .inspection .manifold .naive_bayes .neighbors
        .neural_network .pipeline .compose .calibration .utils""",
    ),
    "scipy": (
        "scipy==1.9.3 numpy==1.24.4",
        """.integrate .stats .signal .misc .interpolate .linalg .special .optimize .ndimage .sparse .spatial .fft
        scipy""",
    ),
    "matplotlib": (
        f"matplotlib==3.6.3 numpy==1.24.4 {_PLOTS}",
        "matplotlib .pyplot .cm .axes .figure .colors",
    ),
    "seaborn": (
        f"seaborn==0.11.2 matplotlib==3.6.3 pandas==1.5.3 numpy==1.24.4 scipy==1.9.3 pytz {_PLOTS}",
        "seaborn",
    ),
    "polars": ("polars==0.18.15", "polars"),
    "sqlalchemy": ("sqlalchemy==1.4.54", "sqlalchemy .orm .engine"),
    "networkx": ("networkx==2.8.8", "networkx"),
}
#: Names whose documentation mentions another name beside it, or one with another meaning.
NOT_MEANT = frozenset((
    "pandas.DataFrame.lookup", "polars.cumsum", "sqlalchemy.subquery", "sqlalchemy.orm.Query.select_entity_from",
    "networkx.make_small_graph", "networkx.extrema_bounding", "matplotlib.dates.epoch2num",
))  # fmt: skip
#: Names about which a row of the failure catalogue says more.
HAVE_ROWS = frozenset(("matplotlib.cm.get_cmap",))
#: Functions that pass on their arguments, with another default.
OTHER_DEFAULT = frozenset(("seaborn.factorplot",))
#: Runs in a separate process, with the modules as arguments; prints the surface as JSON.
ASK = r'''
import importlib, inspect, json, re, sys, warnings
warnings.simplefilter("ignore")

def words(thing):
    """What the documentation or the body says about a thing that goes away."""
    text = inspect.getdoc(thing) or ""
    said = " ".join(text.split())
    marks = re.finditer(r"(?i)deprecated|will be removed|alias (?:for|of)", said)
    found = [said[mark.start():mark.start() + 300] for mark in marks]
    try:
        body = inspect.getsource(thing)
    except (TypeError, OSError, IndentationError):
        body = ""
    if re.search(r"Warning|deprecat", body):
        found += re.findall(r"""(?s)["']([^"']*(?:[Uu]se|instead|favou?r)[^"']*)["']""", body)[:6]
    return found

def takes(thing):
    try:
        return [(p.name, p.kind.name) for p in inspect.signature(thing).parameters.values()]
    except (TypeError, ValueError):
        return None

out = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        print(f"{name} cannot be imported: {error!r}", file=sys.stderr)
        continue
    for attribute in dir(module):
        if attribute[0] == "_":
            continue
        try:
            thing = getattr(module, attribute)
        except Exception:
            continue
        if inspect.ismodule(thing):
            if not thing.__name__.startswith(name.partition(".")[0]):
                continue
            out[f"{name}.{attribute}"] = [[], None, []]
            continue
        kinds = [kind.__name__ for kind in thing.__mro__] if inspect.isclass(thing) else []
        out[f"{name}.{attribute}"] = [kinds, takes(thing), words(thing)]
        if inspect.isclass(thing) and (thing.__module__ or "").startswith(name.partition(".")[0]):
            for member in dir(thing):
                if member[0] == "_":
                    continue
                owner = next((kind.__name__ for kind in thing.__mro__ if member in vars(kind)), attribute)
                held = inspect.getattr_static(thing, member, None)
                kind = type(held).__name__
                held = getattr(held, "__func__", getattr(held, "fget", held))
                out[f"{name}.{attribute}.{member}"] = [[owner, kind], takes(held), words(held)]
json.dump(out, sys.stdout)
'''


def surface(modules: list[str], folder: Path | None) -> dict[str, list[Any]]:
    """Return the public names of the modules, of the version in the folder, or of the installed one."""
    ahead = "" if folder is None else f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-c", ahead + ASK, *modules]
        done = subprocess.run(command, capture_output=True, text=True, cwd=empty, check=False)
    if done.returncode:
        raise SystemExit(f"{folder or 'installed'}: {done.stderr[-800:]}")
    print(done.stderr, file=sys.stderr, end="")
    read: dict[str, list[Any]] = json.loads(done.stdout)
    return read


def downloaded(package: str, folder: Path) -> Path:
    """Return the folder with the old version; pip downloads it if it is missing."""
    target = folder / package
    if not target.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target)]
        subprocess.run([*command, *LIBRARIES[package][0].split()], check=True)
    return target


_NAMED = re.compile(
    r"(?i)\b(?:use|favou?r of|replaced (?:by|with)|renamed to|alias (?:for|of)|moved to)\s+"
    r"(?:the\s+)?(?::\w+:)?[`'\"~]*([\w.]+)"
)


def successor(name: str, said: list[str], new: dict[str, list[Any]]) -> str:
    """Return the full name of the replacement in the documentation; empty if it names nothing that exists."""
    home = name.rpartition(".")[0]
    package = name.partition(".")[0]
    short = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "pl": "polars", "nx": "networkx"}
    for text in said:
        flat = text.replace("\n", " ")
        for match in _NAMED.finditer(flat):
            told = match[1].strip("~.")
            head, _, rest = told.partition(".")
            told = f"{short[head]}.{rest}" if head in short and rest else told
            tried = [told, f"{home}.{told}", f"{home.rpartition('.')[0]}.{told}", f"{package}.{told}"]
            for one in tried:
                if one in new and one != name:
                    return one
    return ""


def removed(package: str, folder: Path) -> dict[str, str]:
    """Return the removed names, with their successors; `=` precedes one that takes the same parameters.

    A member of a class is listed once, under the class that defines it, as in `NDFrame.tshift`.
    """
    modules = [package * (name[0] == ".") + name for name in LIBRARIES[package][1].split()]
    old, new = surface(modules, downloaded(package, folder)), surface(modules, None)
    found: dict[str, str] = {}
    for name, (kinds, parameters, said) in sorted(old.items()):
        home, _, last = name.rpartition(".")
        member = home in old and bool(old[home][0])
        short = name.removeprefix(f"{package}.")
        if member:
            owner = kinds[0] if kinds[0] in new.get(home, [[]])[0] else home.rpartition(".")[2]
            short = f"{owner}.{last}"
        if name in new:
            now = new[name][1]
            if parameters is None or now is None or any("VAR_KEYWORD" in kind for _, kind in now):
                continue
            names = {one for one, _ in now}
            for one, kind in parameters:
                if (
                    one not in names
                    and one[0] != "_"
                    and "VAR" not in kind
                    and "POSITIONAL_ONLY" not in kind
                    and one not in ("self", "cls")
                ):
                    found.setdefault(f"{short}({one})", "")
        elif name not in HAVE_ROWS and (not member or home in new):  # else its whole class was removed
            instead = "" if name in NOT_MEANT else successor(name, said, new)
            if member and instead and new[instead][0][:1] == [instead.rpartition(".")[2]]:
                instead = ""  # a class in place of one of its members
            same = (
                instead
                and parameters is not None
                and (parameters == new[instead][1] or _passes_on(parameters))
            )
            same = same and name not in OTHER_DEFAULT and (not member or kinds[1:] == new[instead][0][1:])
            if member and instead.startswith(f"{home}."):
                instead = f"{package}.{owner}.{instead.rpartition('.')[2]}"
            found[short] = found.get(short) or ("=" if same else "") + instead
    return found


def _passes_on(parameters: list[Any]) -> bool:
    """Return whether a function takes any arguments, which it then passes on to its successor."""
    return [kind for _, kind in parameters] in (["VAR_POSITIONAL", "VAR_KEYWORD"], ["*args", "**kwargs"])


def table(packages: list[str], folder: Path) -> str:
    lines = [
        "# Made by benchmarks/removed_interfaces.py: what an older version has, and the installed one lacks."
    ]
    lines += [
        "# `=` before a successor: it takes the same parameters. Without one the documentation named none.",
        "",
    ]
    for package in packages:
        gone, named = [], {}
        for name, instead in removed(package, folder).items():
            if instead:
                named[name] = instead
            else:
                gone.append(name)
        lines += [f"[{package}]", f'old = "{LIBRARIES[package][0].split()[0]}"', 'gone = """']
        line = ""
        for name in gone:
            if len(line) + len(name) > 115:
                lines.append(line.rstrip())
                line = ""
            line += name + " "
        lines += [line.rstrip() + '"""', f"[{package}.instead]"]
        lines += [f'"{name}" = "{instead}"' for name, instead in named.items()]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the old versions are downloaded")
    parser.add_argument("--write", type=Path, help="the table to write; without it, it is printed")
    parser.add_argument("packages", nargs="*", help=", ".join(LIBRARIES))
    given = parser.parse_args()
    made = table(given.packages or list(LIBRARIES), given.folder)
    if given.write:
        given.write.write_text(made + "\n", encoding="utf-8")
    else:
        print(made)


if __name__ == "__main__":
    main()

"""Facts about values of Python's own types, and packages."""

from __future__ import annotations

import ast
import builtins
import functools
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from healkit.errors import near_misses
from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    is_array,
    is_frame,
    is_series,
    label_difference,
    labels_text,
    near_label,
    nearest,
    own_dict,
    quoted,
    similar,
)

_KEYS_MAX = 2000
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def _read(scene: Scene, node: ast.expr) -> Any:
    """Return the value of an expression, also of a `len(…)` or an expression in parentheses."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[one]):
            value = scene.value(one)
            if (
                type(value) in {list, tuple, dict, set, str}
                or is_frame(value)
                or is_series(value)
                or is_array(value)
            ):
                return len(value)
    return scene.value(node)


def zero(scene: Scene) -> Facts | None:
    """Name the divisor that is zero."""
    node = scene.node if isinstance(scene.node, ast.BinOp) else None
    divisor = node.right if node is not None else getattr(scene.statement, "value", None)
    if (node is None and not isinstance(scene.statement, ast.AugAssign)) or divisor is None:
        return None
    value, named = _read(scene, divisor), scene.text(divisor)
    if type(value) not in {int, float} or value != 0 or not named or isinstance(divisor, ast.Constant):
        return None
    facts = {
        "about": "divisor",
        "owner": named,
        "value": f"`{value!r}`",
        "line": scene.text(node) if node else "",
    }
    if isinstance(divisor, ast.Call):
        return {**facts, "about": "divisor_length", "given": scene.text(divisor.args[0])}
    return facts


def key(scene: Scene) -> Facts | None:
    """Say which key the code looked up, and which keys the dict has."""
    owner, node = mapping(scene)
    wanted = scene.error.args[0] if len(scene.error.args) == 1 else UNREAD
    if owner is None or node is None or not quoted(wanted) or dict.__len__(owner) > 100_000:
        return None
    keys = list(dict.keys(owner))
    facts = {"owner": scene.text(node), "wanted": quoted(wanted)}
    if not facts["owner"]:
        return None
    if not keys:
        return {**facts, "about": "dict_empty"}
    parts = re.split(r"([;,\t|])", keys[0]) if len(keys) == 1 and type(keys[0]) is str else []
    if wanted in parts[::2] and len(parts) > 1:  # a row of `csv.DictReader`
        written = repr(parts[1])
        return {**facts, "about": "one_key", "known": quoted(keys[0]), "separator": f"`delimiter={written}`"}
    if (near := nearest(wanted, keys[:_KEYS_MAX])) is not None:
        about = "key_differs" if label_difference(wanted, near[0]) else "key_similar"
        return {**facts, "about": about, **near_label(near)}
    listing = labels_text(keys, len(keys))
    return {**facts, "about": "key_missing", "known": listing} if listing else None


def mapping(scene: Scene) -> tuple[Any, ast.expr | None]:
    """Return the dict of the failed lookup, and its expression."""
    match scene.node:
        case ast.Subscript(value=owner):
            pass
        case ast.Call(func=ast.Attribute(value=owner, attr="pop")):
            pass
        case _:
            return None, None
    value = scene.value(owner)
    kind = type(value)
    is_plain = issubclass(kind, dict) and type.__getattribute__(kind, "__getitem__") is dict.__getitem__
    return (value, owner) if is_plain else (None, None)


def index_end(scene: Scene) -> Facts | None:
    """Say how many items a list has, and which one the code looked up."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    owner, index = scene.value(node.value), scene.value(node.slice)
    if type(owner) not in {list, tuple, str} or type(index) is not int:
        return None
    facts = {
        "owner": scene.text(node.value),
        "asked": f"`{index}`",
        "index": scene.text(node.slice),
        "size": f"{len(owner):,}",
    }
    if not facts["owner"] or -len(owner) <= index < len(owner):
        return None
    if not owner:
        return {**facts, "about": "item_of_none"}
    constant = isinstance(node.slice, ast.Constant | ast.UnaryOp)
    facts["named"] = "" if constant or not facts["index"] else f"Here {facts['index']} is {facts['asked']}."
    return {**facts, "about": "item_past_end", "last": f"`{len(owner) - 1}`"}


def operands(scene: Scene) -> Facts | None:
    """Show both operands where one is `None` or their types differ."""
    statement = scene.statement
    if isinstance(scene.node, ast.BinOp):
        sides = [scene.node.left, scene.node.right]
    elif isinstance(scene.node, ast.Compare) and len(scene.node.comparators) == 1:
        sides = [scene.node.left, scene.node.comparators[0]]
    elif isinstance(statement, ast.AugAssign) and scene.node in {statement, None}:
        sides = [statement.target, statement.value]
    else:
        return None
    op = (
        getattr(scene.node, "op", None)
        or getattr(statement, "op", None)
        or getattr(scene.node, "ops", [None])[0]
    )
    sign = f"`{_SIGNS[type(op)]}`" if type(op) in _SIGNS else "The operation"
    values = [scene.value(side) for side in sides]
    texts = [scene.text(side) for side in sides]
    nothing = [
        text
        for text, value, side in zip(texts, values, sides, strict=True)
        if value is None and not isinstance(side, ast.Constant)
    ]
    if len(nothing) == 1 and nothing[0]:
        return {"about": "operand_is_none", "owner": nothing[0]}
    kinds = [type(value) for value in values]
    if kinds in ([str, int], [int, str], [str, float], [float, str]) and all(texts):
        number, text = (1, 0) if kinds[0] is str else (0, 1)
        facts = {"about": "text_and_number", "kind": f"`{kinds[number].__name__}`", "sign": sign}
        facts["number"] = _with_value(texts[number], values[number], sides[number])
        facts["text"] = _with_value(texts[text], values[text], sides[text])
        as_text, as_number = (
            f"str({texts[number].strip('`')})",
            f"{kinds[number].__name__}({texts[text].strip('`')})",
        )
        compares = isinstance(scene.node, ast.Compare)
        facts["ways"] = "" if compares else f"For text, write `{as_text}`."
        if _is_number(values[text]):
            facts["ways"] += f" For a number, write `{as_number}`."
        facts["ways"] = facts["ways"].strip()
        only = (number, as_text) if not compares else (text, as_number) if _is_number(values[text]) else None
        only = None if not compares and _is_number(values[text]) else only
        facts |= {"given": texts[only[0]], "part": f"`{only[1]}`"} if only else {"given": "", "part": ""}
        if compares:
            facts["about"] = "text_and_number_compared"
        return facts
    return None


def _with_value(text: str, value: object, node: ast.expr) -> str:
    """Return an expression with its value in parentheses, unless it is a literal."""
    return text if isinstance(node, ast.Constant) or not quoted(value) else f"{text} ({quoted(value)})"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def none_to_number(scene: Scene) -> Facts | None:
    """Say which part of the line is `None` where the code converts it to a number."""
    node = scene.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) != 1:
        return None
    value, named = scene.value(node.args[0]), scene.text(node.args[0])
    if value is not None or node.func.id not in {"int", "float"}:
        return None
    if isinstance(node.args[0], ast.Constant) or not named:
        return {"about": "none_to_number", "kind": f"`{node.func.id}`", "owner": "its argument"}
    return {"about": "none_to_number", "kind": f"`{node.func.id}`", "owner": named}


def none_item(scene: Scene) -> Facts | None:
    """Name the `None` in which the code looks up an item."""
    node = scene.node
    if not isinstance(node, ast.Subscript) or isinstance(node.value, ast.Constant):
        return None
    named = scene.text(node.value)
    return {"about": "none_item", "owner": named} if named and scene.value(node.value) is None else None


def none_loop(scene: Scene) -> Facts | None:
    """Name the `None` that the code iterates over."""
    nodes = [scene.node, getattr(scene.statement, "iter", None)]
    for node in nodes:
        if (
            isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
            and scene.value(node) is None
            and scene.text(node)
        ):
            return {"about": "none_loop", "owner": scene.text(node)}
    return None


def shadowed(scene: Scene) -> Facts | None:
    """Say which value a variable has that hides a built-in name."""
    node = scene.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    name = node.func.id
    value = scene.value(node.func)
    if value is UNREAD or not hasattr(builtins, name) or value is getattr(builtins, name):
        return None
    text = quoted(value) or f"a value of type `{type(value).__name__}`"
    return {"about": "shadowed", "owner": f"`{name}`", "value": text, "instead": f"`del {name}`"}


# Packages, and parts of them that have moved


#: Module → the package that has it, where the two names differ.
PACKAGES = {
    "Bio": "biopython", "Crypto": "pycryptodome", "MySQLdb": "mysqlclient", "OpenSSL": "pyOpenSSL",
    "PIL": "Pillow", "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python",
    "dateutil": "python-dateutil", "discord": "discord.py", "docx": "python-docx", "dotenv": "python-dotenv",
    "faiss": "faiss-cpu", "fitz": "PyMuPDF", "git": "GitPython", "github": "PyGithub",
    "imblearn": "imbalanced-learn", "jose": "python-jose", "jwt": "PyJWT", "kafka": "kafka-python",
    "ldap": "python-ldap", "Levenshtein": "python-Levenshtein", "magic": "python-magic",
    "mpl_toolkits": "matplotlib", "multipart": "python-multipart", "nacl": "PyNaCl", "osgeo": "GDAL",
    "pptx": "python-pptx", "psycopg2": "psycopg2-binary", "pytorch_lightning": "pytorch-lightning",
    "sentence_transformers": "sentence-transformers", "serial": "pyserial", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "skopt": "scikit-optimize", "slugify": "python-slugify",
    "telegram": "python-telegram-bot", "umap": "umap-learn", "usb": "pyusb", "wx": "wxPython", "yaml": "PyYAML",
    "zmq": "pyzmq",
}  # fmt: skip
#: Well-known packages that are imported by their own name.
SAME = frozenset((
    "altair", "bokeh", "catboost", "dask", "datasets", "django", "fastapi", "flask", "gensim", "geopandas",
    "h5py", "ipywidgets", "jax", "joblib", "keras", "langchain", "lightgbm", "matplotlib", "networkx", "nltk",
    "numba", "numpy", "openai", "openpyxl", "optuna", "pandas", "plotly", "polars", "psycopg", "pyarrow",
    "pydantic", "pymongo", "pytest", "redis", "requests", "scipy", "seaborn", "shap", "spacy", "sqlalchemy",
    "statsmodels", "streamlit", "sympy", "tabulate", "tensorflow", "tiktoken", "torch", "torchvision", "tqdm",
    "transformers", "wordcloud", "xgboost", "xlrd",
))  # fmt: skip
#: Parts of scikit-learn that have moved, and names of them that are elsewhere.
MOVED_PARTS = {
    "sklearn.cross_validation": "sklearn.model_selection", "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.learning_curve": "sklearn.model_selection", "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six", "sklearn.preprocessing.imputation": "sklearn.impute",
    "pandas.plotting._matplotlib.compat": "pandas.plotting", "scipy.misc.pilutil": "imageio",
}  # fmt: skip


def missing_module(scene: Scene) -> dict[str, str] | None:
    """Say which package has a module, or that the installed package has no such part."""
    name = getattr(scene.error, "name", None)
    if type(name) is not str or not all(part.isidentifier() for part in name.split(".")):
        return None
    parent, _, part = name.rpartition(".")
    if parent and parent in sys.modules:
        facts = {"about": "no_such_part", "owner": f"`{parent}`", "wanted": f"`{part}`"}
        if name in MOVED_PARTS:
            return {**facts, "about": "part_moved", "instead": f"`{MOVED_PARTS[name]}`"}
        places = own_dict(sys.modules[parent]).get("__path__", ())
        parts = [
            submodule.name for submodule in pkgutil.iter_modules(list(places)) if submodule.name[0] != "_"
        ]
        near = [candidate for candidate in near_misses(part, parts, 1) if similar(part, candidate, 0.75)]
        return {**facts, "about": "part_near", "found": f"`{near[0]}`"} if near else facts
    facts = {"wanted": f"`{name}`"}
    if name in PACKAGES:
        return {
            **facts,
            "about": "package_other",
            "package": f"`{PACKAGES[name]}`",
            "install": f"`%pip install {PACKAGES[name]}`",
        }
    if name in SAME:
        return {**facts, "about": "package_same", "install": f"`%pip install {name}`"}
    loaded = {module.partition(".")[0] for module in list(sys.modules)}
    suggestion = next(
        (package for package in sorted(SAME) if package in loaded and similar(name, package)), None
    )
    return {**facts, "about": "package_misspelt", "found": f"`{suggestion}`"} if suggestion else None


# Numbers with more around them


class Step(NamedTuple):
    """Method of a text, and its arguments as Python writes them."""

    method: str
    arguments: tuple[str, ...]

    def of(self, text: str) -> str:
        """Return the text without what the step removes."""
        result: str = getattr(text, self.method)(*map(ast.literal_eval, self.arguments))
        return result


#: Signs after a number that multiply it.
_SCALES = frozenset(
    ("k", "m", "b", "g", "t", "bn", "mn", "mio", "mrd", "tsd", "million", "billion", "thousand")
)


def cleanings(text: str) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Yield the steps that turn a text into a number, each with the reason."""
    commas, point = Step("replace", ('","', '""')), Step("replace", ('","', '"."'))
    if re.fullmatch(r"\s*-?\d{1,3}(,\d{3})+(\.\d+)?\s*", text):
        yield "Remove the thousands separators.", (commas,)
    if re.fullmatch(r"\s*-?\d+,\d+\s*", text):
        yield "Replace the decimal comma with a point.", (point,)
    if re.fullmatch(r"-?\d{1,3}(\.\d{3})+,\d+", text):
        yield "Replace the decimal comma with a point.", (Step("replace", ('"."', '""')), point)
    if re.fullmatch(r"-?\d+(_| )\d+", text):
        yield "Remove the spaces between thousands.", (Step("replace", ('" "', '""')),)
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?[\d.]+", text):
        yield f"Remove {match[1]!r} before the number.", (Step("lstrip", (repr(match[1]),)),)
    match = re.fullmatch(r"-?[\d.]+(\s*)([^\d\s.]+)", text)
    if match and match[2].casefold() not in _SCALES:
        yield f"Remove {match[2]!r} after the number.", (Step("rstrip", (repr(match[2]),)),)
    if match := re.fullmatch(r"([^\d\s.+-]+)\s*-?\d[\d,]*(\.\d+)?", text):
        steps = (Step("lstrip", (repr(match[1]),)), commas)
        yield "Remove everything that is not part of the number.", steps


def cleaning_of(text: str, others: Iterable[object]) -> str:
    """Return the reason of the first of `cleanings` that turns a text and all others into numbers.

    `none` if each of them leaves a text that is not a number; empty if nothing cleans the text. Missing values do not
    count.
    """
    texts = [entry for entry in others if type(entry) is str and not is_number(entry)]
    every = list(cleanings(text))
    for reason, steps in every:
        cleaned = (functools.reduce(lambda text, step: step.of(text), steps, raw_text) for raw_text in texts)
        # `0,5` without its comma, and `500 g` without `kg`, are numbers as well, and other ones.
        if all(reason in dict(cleanings(raw_text)) for raw_text in texts) and all(map(is_number, cleaned)):
            return reason
    return "none" if every else ""


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

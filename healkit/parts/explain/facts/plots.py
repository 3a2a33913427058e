"""Facts about plots, sizes of arguments, words of a library."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from healkit.parts.explain.facts.scene import (
    UNREAD,
    Facts,
    Scene,
    complete,
    has_shape,
    is_text,
    of_package,
    quoted,
    similar,
)

_WORD_MAX_CHARS = 40


def axes_attribute(scene: Scene) -> Facts | None:
    """Say which method of a plot was meant: `set_xlabel` for `xlabel`, or one of the plots in a figure."""
    name, value = getattr(scene.error, "name", None), getattr(scene.error, "obj", UNREAD)
    node = next((n for n in scene.expressions() if isinstance(n, ast.Attribute) and n.attr == name), None)
    if type(name) is not str or node is None or value is UNREAD or not of_package(value, "matplotlib"):
        return None
    facts = {"owner": scene.text(node.value), "wanted": f"`{name}`"}
    if hasattr(type(value), f"set_{name}"):
        return complete({**facts, "about": "axes_setter", "found": f"`set_{name}`"})
    axes = getattr(sys.modules.get("matplotlib.axes"), "Axes", None)
    if type(value).__name__ == "Figure" and hasattr(axes, name) and facts["owner"]:
        instead = f"`{facts['owner'].strip('`')}.gca().{name}(…)`"
        return {**facts, "about": "figure_for_axes", "instead": instead}
    return None


def one_axes(scene: Scene) -> Facts | None:
    """Name the single plot that the code indexes like a list."""
    node = scene.node
    if not isinstance(node, ast.Subscript):
        return None
    return complete({"about": "one_axes", "owner": scene.text(node.value), "part": scene.text(node)})


def argument_names(scene: Scene) -> Iterator[str]:
    """Yield what the functions of matplotlib below the failing line take by name, properties included."""
    for frame in scene.frames:
        code, module = frame.f_code, frame.f_globals.get("__name__")
        if type(module) is str and module.startswith("matplotlib."):
            yield from code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    artist = str(scene.error).partition(".set(")[0]
    owner = scene.local("matplotlib", "self", accept=lambda value: type(value).__name__ == artist)
    if owner is not UNREAD:
        yield from (name[4:] for name in dir(type(owner)) if name.startswith("set_"))


def argument_sizes(scene: Scene) -> Facts | None:
    """Name two arguments of the failing call that have different numbers of values."""
    node = scene.node
    if not isinstance(node, ast.Call) or not scene.frames:
        return None
    arguments = [
        *node.args,
        *(keyword.value for keyword in node.keywords if keyword.arg not in {"weights", "sizes"}),
    ]
    sizes = [(scene.text(argument), _size(scene.value(argument))) for argument in arguments]
    sized = [(text, size) for text, size in sizes if text and size is not None]
    for text, size in sized[1:]:
        if size != sized[0][1]:
            facts = {"about": "argument_sizes", "function": scene.text(node.func), "first": sized[0][0]}
            facts |= {"size": str(sized[0][1]), "other": text, "other_size": str(size)}
            return complete(facts)
    return None


def _size(value: Any) -> int | None:
    if has_shape(value):
        return int(value.shape[0]) if value.ndim else None
    return len(value) if type(value) in {list, tuple, range} else None


# Words

#: Message of a word that a library does not know, and what it was given as.
_WORDS = (
    (r"^The '(?P<what>\w+)' parameter of \w+ must be .*\. Got (?P<wrong>'[^']*') instead", ""),
    (r"^Invalid parameter (?P<wrong>'\w+') for estimator", "parameter of the model"),
    (r"^(?P<wrong>'[^']*') is not a valid Merge type", "way to merge"),
    (r"^\"?(?P<wrong>'[^']*') is not a valid value for rcParam", "setting of matplotlib"),
    (r"^(?P<wrong>'[^']*') is not a valid (?:value for (?:\w*color|c)\b|color)", "color of matplotlib"),
    (r"^(?P<wrong>'(?!seaborn)[^']*') is not a valid package style", "style of matplotlib"),
    (r"^(?P<wrong>'[^']*') is not a valid scoring value", "score"),
    (r"^(?P<wrong>\w+) is not a valid plot kind", "kind of plot"),
    (r"^unknown encoding: (?P<wrong>[\w-]+)", "encoding"),
    (r"^Unrecognized string (?P<wrong>'[^']*') to axis", "scale of the axes"),
)  # fmt: skip
_AXIS = ("on", "off", "equal", "scaled", "tight", "auto", "image", "square")


def word_near(scene: Scene) -> Facts | None:
    """Say which of a library's words is most similar to the unknown one."""
    message = str(scene.error.args[0]) if scene.error.args else str(scene.error)
    for pattern, kind in _WORDS:
        if match := re.search(pattern, message, re.DOTALL):
            wrong = match["wrong"].strip("'")
            what = kind or f"value of `{match['what']}`"
            break
    else:
        return None
    candidates = {
        word for word in _known(message, what) if word != wrong and 0 < len(word) <= _WORD_MAX_CHARS
    }
    ranked = sorted(candidates, key=lambda one: (-_likeness(wrong, one), one))
    if not ranked or not (similar(wrong, ranked[0]) or wrong.casefold() == ranked[0].casefold()):
        return None
    node = next((n for n in scene.expressions() if isinstance(n, ast.Constant) and n.value == wrong), None)
    written = scene.text(node) if node is not None else quoted(wrong)
    return complete({"about": "word_near", "wrong": written, "what": what, "found": quoted(ranked[0])})


def _known(message: str, what: str) -> Iterable[str]:
    """Return the words that a message lists, or that the library has."""
    if what == "color of matplotlib":
        return list(getattr(sys.modules.get("matplotlib.colors"), "CSS4_COLORS", ()))
    if what == "style of matplotlib":
        return list(getattr(sys.modules.get("matplotlib.style"), "available", ()))
    if what == "encoding":
        import encodings.aliases

        return [*encodings.aliases.aliases, "utf-8", "utf-16", "latin-1", "cp1252", "ascii"]
    if what == "scale of the axes":
        return _AXIS
    if what == "way to merge":
        return re.findall(r"\w+", message.partition(":")[2])
    return [word for word in re.findall(r"'([^']*)'", message) if is_text(word)]


def _likeness(wrong: str, known: str) -> float:
    return difflib.SequenceMatcher(None, wrong.casefold(), known.casefold()).ratio()

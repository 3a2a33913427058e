"""Facts about a failure, and names like the missing one.

A stored failure is text. It does not show which table lacked the column, or which row contained text instead of a
number. `observe` reads this while the exception and its frames exist, and the failure catalogue makes a sentence of it.
If the objects do not show it, there is no fact and no sentence.

No foreign code runs: names come from dicts, classes and folders, never from a `__dir__` or a `__getattr__`. The
interpreter's own "Did you mean" covers only names and attributes, with one suggestion. Most often the missing name is a
key or a column.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import difflib
import itertools
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType, TracebackType
from typing import Any, cast

from healkit.core.contracts.failure import FACT_MAX_CHARS, FACTS_MAX, KNOWN_MAX, NEAR_MAX
from healkit.errors import near_misses
from healkit.parts.explain.facts import (
    arrays,
    classes,
    columns,
    documents,
    libraries,
    plots,
    scopes,
    standard,
    tables,
    values,
)
from healkit.parts.explain.facts.scene import PRIVATE, UNREAD, Facts, Scene, is_frame, near_files, similar
from healkit.parts.explain.facts.tables import searched
from healkit.parts.explain.facts.values import mapping

Observer = Callable[[Scene], Facts | None]

#: Exception types (by their bare names; empty for any), a part of the message, and what reads the facts; the first that
#: finds some.
_OBSERVERS: tuple[tuple[str, str, tuple[Observer, ...]], ...] = (
    ("TypeError", r"arg 2 must be|is not iterable|is not callable|attribute name must be|as an integer|^Population",
     (standard.exchanged,)),
    ("ValueError", r"^time data|^invalid mode", (standard.exchanged,)),
    ("KeyError", "", (tables.merge_key, tables.missing_label, values.key)),
    ("KeyError", "", (classes.enum_name, plots.word_near)),
    ("KeyError ColumnNotFoundError ArrowInvalid", r"not found|to find column|in schema|FieldRef|^\w+$",
     (tables.other_column,)),
    ("AttributeError", "", (tables.method_elsewhere, classes.coroutine_attribute, plots.axes_attribute)),
    ("AttributeError ImportError TypeError", "has no attribute|cannot import name|unexpected keyword",
     (libraries.said_gone, libraries.gone)),
    ("AttributeError", "", (classes.slots, classes.super_attribute)),
    ("AttributeError", "", (columns.missing_attribute, tables.column_attribute, arrays.class_for_model)),
    ("AttributeError TypeError", r"NoneType", (standard.nothing,)),
    ("AttributeError", "", (libraries.other_name, scopes.attribute)),
    ("ImportError", r"cannot import name", (standard.moved,)),
    ("NameError", "", (scopes.class_name, scopes.inner_name)),
    ("TypeError", r"unsupported operand.* for \+: '(?:int|float)' and 'str'", (standard.summed,)),
    ("UnboundLocalError", "", (scopes.unbound,)),
    ("error PatternError", "", (standard.pattern,)),
    ("JSONDecodeError", "", (documents.json_text,)),
    ("UnicodeDecodeError", "", (documents.undecoded,)),
    ("UnicodeEncodeError", "", (documents.unencoded,)),
    ("ValueError", r"^time data '.*' does not match", (documents.time_format,)),
    ("ValueError", r"^unconverted data remains", (documents.time_rest,)),
    ("ValueError TypeError", r"^Unknown format code|real number is required|an integer is required",
     (standard.formatted,)),
    ("TypeError UFuncTypeError _UFuncNoLoopError", r"resolved dtypes|not contain a loop|not supported for the input",
     (arrays.text_array,)),
    ("TimeoutError", "", (documents.timed_out,)),
    ("RecursionError", "", (classes.recursion,)),
    ("TypeError", r"in 'await' expression|can't be awaited", (classes.awaited,)),
    ("TypeError", r"'async for' requires", (classes.async_loop,)),
    ("TypeError", r"awaitable is required", (classes.passed_function,)),
    ("TypeError", r"\bcoroutine\b", (classes.not_awaited,)),
    ("TypeError AttributeError", r"context manager protocol|__a?(?:enter|exit)__", (classes.managed,)),
    ("TypeError", r"unhashable type", (classes.gathered, classes.unhashable_own)),
    ("TypeError", r"not supported between instances", (classes.compared_own,)),
    ("TypeError", r"missing 1 required positional argument", (classes.method_of_class,)),
    ("TypeError", r"'Axes\w*' object is not subscriptable", (plots.one_axes,)),
    ("ValueError InvalidParameterError OSError LookupError", "", (plots.word_near,)),
    ("ValueError TypeError", r"[Ss]ame (?:first dimension|size|length)|unequal size|inconsistent with",
     (plots.argument_sizes,)),
    ("ValueError", r"whose shape matches|must be of length|Mismatch is between", (plots.argument_sizes,)),
    ("ValueError", r"out of range for month|must be in \d|is out of range", (standard.date_parts,)),
    ("TypeError", r"offset-naive|datetime\.date|unsupported type for timedelta", (standard.moments, standard.argument)),
    ("ValueError TypeError", r"to unpack|cannot unpack", (standard.unpacked,)),
    ("AttributeError", r"Can only use \.", (columns.accessor,)),
    ("IndexError", r"positional indexer", (tables.past_end,)),
    ("IndexError", r"out of bounds for axis", (arrays.index_end,)),
    ("IndexError", r"too many indices", (arrays.too_many_indices,)),
    ("IndexError", r"only integers, slices", (arrays.float_index,)),
    ("IndexError", r"boolean index did not match", (arrays.mask,)),
    ("IndexError", r"index out of range", (values.index_end,)),
    ("TypeError", r"Cannot index by location", (tables.text_position,)),
    ("MergeError", r"No common columns", (tables.merge_nothing_common,)),
    ("ValueError", r"You are trying to merge on", (tables.merge_types,)),
    ("ValueError", r"columns overlap but no suffix", (tables.overlap,)),
    ("ValueError", r"No objects to concatenate", (tables.nothing_to_concat,)),
    ("TypeError", r"concat\(\)|first argument must be an iterable of pandas", (tables.concat_without_list,)),
    ("ValueError", r"Index contains duplicate entries", (tables.pivot_duplicates,)),
    ("ValueError", r"cannot reindex on an axis with duplicate labels", (tables.duplicate_index,)),
    ("ValueError", r"Length of values", (tables.column_length,)),
    ("ValueError", r"All arrays must be of the same length", (tables.column_lengths,)),
    ("ValueError", r"Length mismatch", (tables.too_few_names,)),
    ("ValueError", r"all scalar values", (tables.only_scalars,)),
    ("ValueError", r"Usecols do not match", (tables.usecols,)),
    ("ValueError IndexError", r"Item wrong length|Boolean index has wrong length", (tables.filter_length,)),
    ("IndexingError", r"Unalignable boolean", (tables.filter_index,)),
    ("ValueError", r"The truth value of", (columns.truth,)),
    ("IntCastingNaNError ValueError", r"Cannot convert non-finite|cannot convert NA", (columns.missing_to_int,)),
    ("ValueError", r"could not convert string to float", (arrays.text_features,)),
    ("ValueError", r"could not convert string|invalid literal for int", (columns.number_text,)),
    ("ValueError", r"Unable to parse string", (columns.to_numeric,)),
    ("ValueError DateParseError", r"time data|out of range for month|month must be", (columns.to_datetime,)),
    ("TypeError", r"tz-|offset-naive|Invalid comparison between dtype=datetime64", (columns.zones,)),
    ("InvalidOperationError TypeError", r"not supported for dtype `str`|Series of dtype: String|'NoneType' and",
     (columns.polars_text,)),
    ("TypeError", r"agg function failed|to numeric|does not support|Cannot perform", (columns.not_numeric,)),
    ("TypeError", r"not supported for dtype|unsupported operand|can only concatenate", (columns.operand_of_text,)),
    ("TypeError", r"Can only string multiply|comparison between dtype=(?:str|object)", (columns.operand_of_text,)),
    ("TypeError", r"Invalid value", (columns.wrong_fill,)),
    ("TypeError", r"with a new category", (columns.new_category,)),
    ("ValueError", r"destination is read-only", (columns.read_only,)),
    ("ChainedAssignmentError SettingWithCopyWarning SettingWithCopyError", "", (columns.chained,)),
    ("ValueError", r"could not be broadcast together", (arrays.broadcast,)),
    ("ValueError", r"not aligned|mismatch in its core dimension", (arrays.product,)),
    ("ValueError", r"array dimensions except for the concatenation axis", (arrays.concatenate,)),
    ("AxisError", "", (arrays.axis,)),
    ("ValueError", r"cannot reshape array", (arrays.reshape,)),
    ("ValueError", r"inhomogeneous shape|setting an array element with a sequence", (arrays.ragged,)),
    ("UFuncTypeError _UFuncOutputCastingError UFuncOutputCastingError", r"Cannot cast ufunc", (arrays.cast,)),
    ("LinAlgError", r"Singular matrix", (arrays.singular,)),
    ("LinAlgError", r"must be square", (arrays.not_square,)),
    ("ValueError", r"zero-size array|empty sequence|all NA|Encountered all NA", (arrays.extreme_of_empty,)),
    ("TypeError", r"can be converted to Python scalars|cannot convert the series", (arrays.one_number,)),
    ("ValueError", r"contains NaN", (arrays.gaps,)),
    ("ValueError", r"Expected 2D array|Expected a 2-dimensional container", (arrays.one_dimension,)),
    ("ValueError", r"inconsistent numbers of samples", (arrays.samples, plots.argument_sizes)),
    ("NotFittedError", "", (arrays.not_fitted,)),
    ("ValueError", r"previously unseen labels", (arrays.unseen_label,)),
    ("ValueError", r"Found unknown categories", (arrays.unknown_category,)),
    ("ValueError", r"feature names should match", (arrays.feature_names,)),
    ("ValueError", r"is expecting \d+ features", (arrays.feature_count,)),
    ("ValueError", r"Unknown label type", (arrays.continuous,)),
    ("ValueError", r"only one class|one class", (arrays.one_class,)),
    ("ValueError", r"0 sample\(s\)", (arrays.no_samples,)),
    ("ValueError", r"n_splits=", (arrays.folds,)),
    ("ValueError", r"handle a mix of", (arrays.mixed_targets,)),
    ("TypeError", r"missing 1 required positional argument", (arrays.class_for_model,)),
    ("ModuleNotFoundError", "", (values.missing_module,)),
    ("ZeroDivisionError", "", (values.zero,)),
    ("TypeError", r"must be a string.*NoneType", (values.none_to_number,)),
    ("TypeError", r"unsupported operand|can only concatenate|must be str|not supported between", (values.operands,)),
    ("TypeError", r"'NoneType' object is not subscriptable", (values.none_item,)),
    ("TypeError", r"'NoneType' object is not iterable", (values.none_loop,)),
    ("TypeError", r"'(?:int|float)' object is not iterable", (standard.counted,)),
    ("FileNotFoundError", "", (standard.command,)),
    ("TypeError", r"object is not callable", (classes.called_property, values.shadowed, standard.called_value)),
    ("TypeError", r"must be|expected str|cannot be interpreted|bad operand|doesn't define", (standard.argument,)),
    ("TypeError", r"cannot unpack|context manager|item assignment|argument of type", (classes.own_lacks,)),
    ("TypeError", r"positional arguments? .*given|too many positional|multiple values for", (libraries.by_position,)),
    ("TypeError", r"positional arguments? but", (classes.method_arguments,)),
    ("TypeError", r"unexpected keyword argument", (scopes.keyword_known,)),
    ("TypeError", r"has no len|is not (?:iterable|subscriptable|callable)",
     (classes.own_lacks, classes.inside_library)),
    ("TypeError", r"cannot unpack|unhashable|unsupported operand|not supported between", (classes.inside_library,)),
    ("TypeError", r"can only concatenate|indices must", (classes.inside_library,)),
    ("ValueError", r"to unpack", (classes.inside_library,)),
    ("TypeError ArrowNotImplementedError", r"\bstr(?:ing)? dtype|dtype[= ]'?str|large_string|of type str",
     (columns.calculated,)),
    ("", "", (libraries.own_advice, libraries.other_name)),
)  # fmt: skip


def observe(error: BaseException, innermost: TracebackType | None, warned: Iterable[Any] = ()) -> Facts:
    """Return what the live objects show about a failure: texts by name, with `about` among them; empty for nothing.

    innermost: The traceback entry of the user's own frame.
    warned: See `Scene`.

    `about` names the sentence of the failure catalogue that uses the other texts. These are short, contain only plain
    text and numbers, and never raise. Without such a sentence, `kinds` says what the failure is about; the claims of
    catalogue rows are checked against it.
    """
    if innermost is None:
        return {}
    try:
        scene, message, kind = Scene(error, innermost, warned), str(error), type(error).__name__
        more: Facts = {}
        for names, pattern, observers in _OBSERVERS:
            if (not names or kind in names.split()) and re.search(pattern, message):
                for observer in observers:
                    facts = observer(scene) or {}
                    if "about" in facts:
                        return facts if _is_short(facts) else {}
                    more |= facts
        kinds = dict.fromkeys(name for name in _kinds(scene) if name.isidentifier() and name[0] != "_")
        return {"kinds": " ".join(name for name in kinds if name not in _EVERYWHERE)[:FACT_MAX_CHARS], **more}
    except Exception:  # an observer that fails finds no fact
        import logging  # not before: a trial server holds no module that a fork resets

        logging.getLogger(__name__).debug("a reader of facts raises", exc_info=True)
    return {}


#: Names that say nothing of what a failure is about.
_EVERYWHERE = frozenset(
    ("builtins", "Exception", "BaseException", "healkit", "IPython", "importlib", "contextlib")
)


def _kinds(scene: Scene) -> Iterator[str]:
    """Yield what a failure is about, by name.

    These are the types of the values in the failing statement, with their packages, and the packages that the failure
    went through. If there are none, the kind of the failing expression is added.
    """
    modules = [frame.f_globals.get("__name__") for frame in scene.frames]
    if not modules and scene.node is not None:
        yield type(scene.node).__name__
    for value in (scene.error, *map(scene.value, scene.expressions())):
        if type(value) is ModuleType:
            modules.append(value.__name__)
        for kind in () if value is UNREAD else type.mro(type(value))[:-1]:
            modules.append(module := type.__dict__["__module__"].__get__(kind))
            if module != "__main__":
                yield kind.__name__
    yield from (module.partition(".")[0] for module in modules if type(module) is str)


def _is_short(found: Facts) -> bool:
    return len(found) <= FACTS_MAX and all(len(text) <= FACT_MAX_CHARS for text in found.values())


# Names like the one that failed


_CANDIDATES_MAX = 2000
#: A package that is not installed is often called like a module of Python's own, with a word more.
_MODULE_LIKENESS = 0.8
_NAME_MAX_CHARS = 60
_NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")


def suggestions(
    error: BaseException, innermost: TracebackType | None, warned: Iterable[Any] = ()
) -> tuple[list[str], list[str]]:
    """Return names similar to the missing one, best first, and the first existing names.

    innermost: The traceback entry of the user's own frame.

    Both lists are short, and empty if the failure is not about a name; never raises.
    """
    try:
        if isinstance(error, NameError):
            return _names_for(error, innermost), []
        if isinstance(error, FileNotFoundError):
            return _told(_files_for(error.filename) if type(error.filename) is str else ()), []
        scene = None if innermost is None else Scene(error, innermost, warned)
        if libraries.removed_in(error, scene) is not None or (scene and libraries.said_gone(scene)):
            return [], []  # what replaces it need not be called like it
        wanted, candidates = _asked(error, innermost)
        names = _told(candidates)
        strict = isinstance(
            error, ImportError | AttributeError
        )  # among hundreds, one is always a little similar
        listed = wanted and isinstance(error, KeyError)  # elsewhere there are hundreds
        near = near_misses(wanted, names, NEAR_MAX) if wanted else []
        if isinstance(error, TypeError):
            return scopes.like_parameter(wanted, names)[:NEAR_MAX], names[:KNOWN_MAX] if wanted else []
        near = [name for name in near if name != wanted and (not strict or similar(wanted, name))]
        near = _closest(wanted, near) if strict else near
        return near, names[:KNOWN_MAX] if listed else []
    except Exception:  # noqa: BLE001 - without a guess there is no suggestion
        return [], []


def _asked(error: BaseException, innermost: TracebackType | None) -> tuple[str, Iterable[Any]]:
    """Return the missing name, and the existing names."""
    if isinstance(error, AttributeError):
        wanted = str(error.name or "")
        if (match := scopes.KEYWORD.search(str(error))) and match[1]:
            return match[3], () if innermost is None else plots.argument_names(Scene(error, innermost))
        columns = _told(error.obj.columns[:_CANDIDATES_MAX].tolist()) if is_frame(error.obj) else []
        return wanted, columns if near_misses(wanted, columns) else _attributes(error.obj)
    if isinstance(error, KeyError) and error.args:
        return _keys(error, innermost)
    if isinstance(error, ModuleNotFoundError):
        wanted = str(error.name or "")
        return wanted, [
            module
            for module in sys.stdlib_module_names
            if module[0] != "_" and similar(wanted, module, _MODULE_LIKENESS)
        ]
    if isinstance(error, ImportError) and (match := _NOT_IN_MODULE.search(str(error))):
        return match[1], _attributes(sys.modules.get(match[2]))
    match = scopes.KEYWORD.search(str(error)) or scopes.BUILTIN_KEYWORD.search(str(error))
    if type(error) is TypeError and match is not None and innermost is not None:
        return match["name"], scopes.parameters(match[2], Scene(error, innermost))
    return "", ()


def _files_for(path: str) -> list[str]:
    """Return files with the missing file's name one folder up or down; otherwise similar names in its folder."""
    folder, name = os.path.split(path)
    higher = (
        os.path.join(folder, os.pardir) if os.path.isdir(folder or os.curdir) else os.path.dirname(folder)
    )
    up = os.path.normpath(os.path.join(os.pardir, path))
    elsewhere, beside = [up] if not os.path.isabs(path) and os.path.isfile(up) else [], list[str]()
    for place in (folder, higher):
        with contextlib.suppress(OSError), os.scandir(place or os.curdir) as scan:
            entries = list(itertools.islice(scan, _CANDIDATES_MAX))
            beside = beside or [entry.name for entry in entries if place == folder]
            folders = [
                os.path.join(place, child.name)
                for child in entries
                if child.name[0] != "." and child.is_dir()
            ]
            tried = (os.path.normpath(os.path.join(directory, name)) for directory in (place, *folders))
            elsewhere += [
                candidate
                for candidate in tried
                if candidate != os.path.normpath(path) and os.path.isfile(candidate)
            ]
    return list(dict.fromkeys(elsewhere if name else ()))[:NEAR_MAX] or near_files(name, beside)


#: How much less similar than the best a name may be, to be named beside it.
_CLOSE = 0.08
#: There are so many functions and types that one is always a little similar.
_STRICT_LIKENESS = 0.75
#: Functions whose arguments are types or functions, by name.
_TAKE_TYPES = frozenset(("isinstance", "issubclass", "map", "filter", "defaultdict", "cast", "field"))


def _names_for(error: NameError, entry: TracebackType | None) -> list[str]:
    """Return the names in scope that may be meant: similar, and with a value that fits the use.

    A frame that has the column comes before any other name. A built-in name counts only if the code calls it, or if it
    is a type and a type is needed.
    """
    wanted = str(error.name or "")
    if entry is None or not wanted:
        return []
    use = _use_of(Scene(error, entry))
    frame, scores = entry.tb_frame, dict[str, tuple[float, float]]()
    scopes = ((frame.f_locals, False), (frame.f_globals, False), (vars(builtins), True))
    for scope, is_builtin in scopes:
        names = [name for name in _told(scope) if name != wanted and not name.startswith("__")]
        for name in near_misses(_folded(wanted), list({_folded(name): name for name in names}), NEAR_MAX * 3):
            for spelling in (spelling for spelling in names if _folded(spelling) == name):
                fits = _fit(scope.get(spelling), use, is_builtin)
                likeness = difflib.SequenceMatcher(None, _folded(wanted), name).ratio()
                if (
                    spelling in scores
                    or fits < 0
                    or (likeness <= _STRICT_LIKENESS and _is_code(scope.get(spelling)))
                ):
                    continue
                scores[spelling] = (fits, likeness)
    surest = max((fits for fits, _ in scores.values()), default=0.0)
    ranked = sorted((name for name in scores if scores[name][0] == surest), key=lambda name: -scores[name][1])
    best = scores[ranked[0]][1] if ranked else 0.0
    return [name for name in ranked if scores[name][1] >= best - _CLOSE][:NEAR_MAX]


def _closest(wanted: str, near: list[str]) -> list[str]:
    """Return the names that are hardly less similar than the first."""
    likeness = [difflib.SequenceMatcher(None, wanted.casefold(), name.casefold()).ratio() for name in near]
    return [name for name, score in zip(near, likeness, strict=True) if score >= likeness[0] - _CLOSE]


def _folded(name: str) -> str:
    """Return a name in lower case, without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)).casefold()


def _use_of(scene: Scene) -> tuple[str, Any]:
    """Return what the code does with the missing name, and with which item or attribute."""
    around = scene.around(scene.node)
    outer = next((node for node in around if not isinstance(node, ast.Tuple)), None)
    match outer:
        case ast.Subscript(value=owner, slice=item) if owner is scene.node:
            return "item", scene.value(item)
        case ast.Attribute(attr=attribute):
            return "attribute", attribute
        case ast.Call(func=called) if called is scene.node:
            return "call", None
        case ast.Call(func=called) if getattr(called, "id", getattr(called, "attr", "")) in _TAKE_TYPES:
            return "type", None
        case ast.ExceptHandler() | ast.Raise():
            return "exception", None
        case ast.For(iter=looped) | ast.comprehension(iter=looped) if looped is scene.node:
            return "loop", None
    return "", None


def _fit(value: object, use: tuple[str, Any], is_builtin: bool) -> float:
    """Return how well a value fits a use: below 0 not at all, above 0 if the value shows that it was meant."""
    what, wanted = use
    if what == "call":
        return 0.0 if "__call__" in _slots(type(value)) else -1.0
    if what == "type":
        return 0.0 if _is_code(value) else -1.0
    if what == "exception":
        is_exception = issubclass(type(value), type) and issubclass(cast("type", value), BaseException)
        return 0.0 if is_exception else -1.0
    if is_builtin:
        return -1.0
    if what == "loop":
        return 0.0 if {"__iter__", "__getitem__"} & _slots(type(value)) else -1.0
    if what == "item":
        if "__getitem__" not in _slots(type(value)):
            return -1.0
        owner = value.columns if is_frame(value) else value if type(value) is dict else ()
        return 1.0 if type(wanted) is str and wanted in owner else 0.0
    if what == "attribute":
        if wanted in set(_attributes(value)):
            return 1.0
        return 0.0 if "__getattr__" in _slots(type(value)) else -1.0
    return 0.0


def _is_code(value: object) -> bool:
    """Return whether a value is a function or a class."""
    return issubclass(type(value), type) or type(value) in {FunctionType, type(len), type(str.upper)}


def _slots(kind: type) -> set[str]:
    return {name for base in type.mro(kind) for name in type.__getattribute__(base, "__dict__")}


def _attributes(value: object) -> Iterator[str]:
    """Yield the names in an object's and its classes' dicts, without running code of the object."""
    if type(value) is ModuleType:
        yield from (name for name in vars(value) if not name.startswith("_"))
        return
    if issubclass(type(value), type):
        yield from (n for kind in type.mro(cast("type", value)) for n in vars(kind) if not n.startswith("_"))
        return
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = {}
    if type(attributes) is dict:
        yield from (name for name in attributes if type(name) is str and not name.startswith("__"))
    for kind in type.mro(type(value)):
        yield from (name for name in vars(kind) if not name.startswith("_"))


def _keys(error: BaseException, entry: TracebackType | None) -> tuple[str, Iterable[Any]]:
    """Return the missing key or label, and the existing ones of the object; empty if that is not certain."""
    if entry is None:
        return "", ()
    scene = Scene(error, entry)
    wanted, labels = searched(scene)
    if not wanted:
        owner, _ = mapping(scene)
        wanted, labels = (
            list(error.args),
            [] if owner is None else itertools.islice(dict.keys(owner), _CANDIDATES_MAX),
        )
    key = wanted[0] if len(wanted) == 1 else ""
    return (str(key), labels) if type(key) in {str, int, float, bool} else ("", ())


def _told(names: Iterable[Any]) -> list[str]:
    """Return those names that are short text and do not look like a secret or personal data."""
    texts: dict[str, None] = {}
    for name in itertools.islice(names, _CANDIDATES_MAX):
        text = name if type(name) is str else repr(name) if type(name) in {int, float, bool} else ""
        if 0 < len(text) <= _NAME_MAX_CHARS and not PRIVATE.search(text):
            texts[text] = None
    return list(texts)

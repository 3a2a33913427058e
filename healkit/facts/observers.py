"""Observers: which facts are read for which failure."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import TracebackType

from healkit.contracts.failure import FACT_MAX_CHARS, FACTS_MAX
from healkit.facts import arrays, columns, conversions, estimators, joins, lookups, packages, values
from healkit.facts.lookups import Facts
from healkit.facts.scene import Scene

Observer = Callable[[Scene], Facts | None]

#: Exception types (by their bare names), a part of the message, and what reads the facts; the first that finds some.
_OBSERVERS: tuple[tuple[str, str, tuple[Observer, ...]], ...] = (
    ("KeyError", "", (joins.merge_key, lookups.missing_label, values.key)),
    ("AttributeError", "", (columns.missing_attribute, lookups.column_attribute, estimators.class_for_model)),
    ("AttributeError", r"Can only use \.", (columns.accessor,)),
    ("IndexError", r"positional indexer", (lookups.past_end,)),
    ("IndexError", r"out of bounds for axis", (arrays.index_end,)),
    ("IndexError", r"too many indices", (arrays.too_many_indices,)),
    ("IndexError", r"only integers, slices", (arrays.float_index,)),
    ("IndexError", r"boolean index did not match", (arrays.mask,)),
    ("IndexError", r"index out of range", (values.index_end,)),
    ("TypeError", r"Cannot index by location", (lookups.text_position,)),
    ("MergeError", r"No common columns", (joins.merge_nothing_common,)),
    ("ValueError", r"You are trying to merge on", (joins.merge_types,)),
    ("ValueError", r"columns overlap but no suffix", (joins.overlap,)),
    ("ValueError", r"No objects to concatenate", (joins.nothing_to_concat,)),
    ("TypeError", r"concat\(\)|first argument must be an iterable of pandas", (joins.concat_without_list,)),
    ("ValueError", r"Index contains duplicate entries", (joins.pivot_duplicates,)),
    ("ValueError", r"cannot reindex on an axis with duplicate labels", (joins.duplicate_index,)),
    ("ValueError", r"Length of values", (joins.column_length,)),
    ("ValueError", r"All arrays must be of the same length", (joins.column_lengths,)),
    ("ValueError", r"Length mismatch", (joins.too_few_names,)),
    ("ValueError", r"all scalar values", (joins.only_scalars,)),
    ("ValueError", r"Usecols do not match", (joins.usecols,)),
    ("ValueError IndexError", r"Item wrong length|Boolean index has wrong length", (joins.filter_length,)),
    ("IndexingError", r"Unalignable boolean", (joins.filter_index,)),
    ("ValueError", r"The truth value of", (columns.truth,)),
    ("IntCastingNaNError ValueError", r"Cannot convert non-finite|cannot convert NA", (conversions.missing_to_int,)),
    ("ValueError", r"could not convert string to float", (estimators.text_features,)),
    ("ValueError", r"could not convert string|invalid literal for int", (conversions.number_text,)),
    ("ValueError", r"Unable to parse string", (conversions.to_numeric,)),
    ("ValueError DateParseError", r"time data|out of range for month|month must be", (conversions.to_datetime,)),
    ("TypeError", r"tz-|offset-naive|Invalid comparison between dtype=datetime64", (columns.zones,)),
    ("TypeError", r"agg function failed|to numeric|does not support|Cannot perform", (columns.not_numeric,)),
    ("TypeError", r"not supported for dtype|unsupported operand|can only concatenate", (columns.operand_of_text,)),
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
    ("ValueError", r"contains NaN", (estimators.gaps,)),
    ("ValueError", r"Expected 2D array|Expected a 2-dimensional container", (estimators.one_dimension,)),
    ("ValueError", r"inconsistent numbers of samples", (estimators.samples,)),
    ("NotFittedError", "", (estimators.not_fitted,)),
    ("ValueError", r"previously unseen labels", (estimators.unseen_label,)),
    ("ValueError", r"Found unknown categories", (estimators.unknown_category,)),
    ("ValueError", r"feature names should match", (estimators.feature_names,)),
    ("ValueError", r"is expecting \d+ features", (estimators.feature_count,)),
    ("ValueError", r"Unknown label type", (estimators.continuous,)),
    ("ValueError", r"only one class|one class", (estimators.one_class,)),
    ("ValueError", r"0 sample\(s\)", (estimators.no_samples,)),
    ("ValueError", r"n_splits=", (estimators.folds,)),
    ("ValueError", r"handle a mix of", (estimators.mixed_targets,)),
    ("TypeError", r"missing 1 required positional argument", (estimators.class_for_model,)),
    ("ModuleNotFoundError", "", (packages.missing_module,)),
    ("ZeroDivisionError", "", (values.zero,)),
    ("TypeError", r"must be a string.*NoneType", (values.none_to_number,)),
    ("TypeError", r"unsupported operand|can only concatenate|must be str|not supported between", (values.operands,)),
    ("TypeError", r"'NoneType' object is not subscriptable", (values.none_item,)),
    ("TypeError", r"'NoneType' object is not iterable", (values.none_loop,)),
    ("TypeError", r"object is not callable", (values.shadowed,)),
)  # fmt: skip


def observe(error: BaseException, innermost: TracebackType | None) -> Facts:
    """Return what the live objects show about a failure: texts by name, `about` among them; empty for nothing.

    innermost: the traceback entry of the user's own frame. `about` names the sentence of the failure catalogue that the
    other texts are for. They are short, name only what is plain text or a number, and never raise.
    """
    if innermost is None:
        return {}
    try:
        scene, message, kind = Scene(error, innermost), str(error), type(error).__name__
        for names, pattern, observers in _OBSERVERS:
            if kind in names.split() and re.search(pattern, message):
                for observer in observers:
                    if (found := observer(scene)) is not None:
                        return found if _is_short(found) else {}
    except Exception:  # an observer that fails finds no fact
        import logging  # not before: a trial server holds no module that a fork resets

        logging.getLogger(__name__).debug("a reader of facts raises", exc_info=True)
    return {}


def _is_short(found: Facts) -> bool:
    return len(found) <= FACTS_MAX and all(len(text) <= FACT_MAX_CHARS for text in found.values())

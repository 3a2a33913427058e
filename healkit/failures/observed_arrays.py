"""Sentences for facts of numpy and scikit-learn.

Each is for one `about` of `healkit.facts`, as in `observed_tables`.
"""

from __future__ import annotations

from healkit.failures.observed_tables import said
from healkit.failures.pattern import FailurePattern

_ARRAYS = (
    said(
        "shapes_differ",
        "{left} has shape {left_shape} and {right} has {right_shape}: {left_size} and {right_size} do not fit.",
        why="Shapes are compared from their ends; each pair of sizes must be equal, or one of them 1.",
        hint="Which of the two shapes is not what you expect?",
    ),
    said(
        "broadcast_rows",
        "{left} has shape {left_shape} and {right} has {right_shape}: {left_size} and {right_size} do not fit.",
        why="Shapes are compared from their ends: {right} is taken as one row, and it has a value for each row.",
        hint="Does each value of {right} belong to a row of {left}?",
        fix="If so, make it a column: {instead}.",
    ),
    said(
        "product",
        "{left} has shape {left_shape} and {right} has {right_shape}: {left_size} columns on the left, {right_size} rows on the right.",
        why="A matrix product needs as many columns on the left as rows on the right.",
        hint="Which of the two shapes is not what you expect?",
    ),
    said(
        "product_turned",
        "{left} has shape {left_shape} and {right} has {right_shape}: {left_size} columns on the left, {right_size} rows on the right.",
        why="A matrix product needs as many columns on the left as rows on the right.",
        hint="Is {right} transposed?",
        fix="If so, transpose it back: {instead}.",
    ),
    said(
        "concatenate",
        "{shapes}.",
        why="Arrays are concatenated along one axis; their sizes along the others must be equal.",
        hint="Which of the shapes is not what you expect?",
    ),
    said(
        "axis",
        "{owner} has {count} (its shape is {shape}), but the code uses axis {wanted}.",
        why="Axes count from 0.",
        hint="Should the array have more axes here?",
        fix="Use an axis that it has, or leave `axis` out.",
    ),
    said(
        "too_many_indices",
        "{owner} has shape {shape}, so it takes at most {has:index}, but the code gives {given}.",
        why="There is at most one index for each number of the shape.",
        hint="Should the array have more axes here?",
    ),
    said(
        "array_end",
        "{owner} has shape {shape}; index {asked} is beyond the end of axis {axis}.",
        why="Indexes count from 0, so the last one is {last}.",
        hint="Where does the index come from?",
    ),
    said(
        "array_empty",
        "{owner} has shape {shape}: it has no item at index {asked}.",
        hint="Why is it empty here?",
    ),
    said(
        "float_index",
        "The index {index} is {value}, a float.",
        why="An index is an integer. `/` always returns a float.",
        hint="Which integer do you want?",
        fix="Use `//` for integer division, or `int(…)`.",
    ),
    said(
        "mask",
        "{mask} has shape {mask_shape}, and {owner} has {owner_shape}.",
        why="A mask has one True or False for each value.",
        hint="Was it made from another array?",
        fix="Build the mask from the array that it filters.",
    ),
    said(
        "reshape_size",
        "{owner} has {size:value}, and the shape needs {wanted} = {needed}.",
        why="The new shape must have exactly as many places as there are values.",
        hint="How many values should there be?",
        fix="Write -1 for one size, and numpy calculates it.",
    ),
    said(
        "ragged",
        "{first} has {first_size:item} and {other} has {other_size}.",
        why="An array is a full grid: all rows have the same length.",
        hint="Which type is right?",
        fix="Fill up the short rows, or keep a list of lists.",
    ),
    said(
        "cast",
        "{owner} has the type {dtype}, and the result is {result}.",
        why="An assignment in place keeps the array's type, and that cannot hold the result.",
        hint="Should the array hold floats?",
        fix="Make a new array: {instead}.",
    ),
    said(
        "singular",
        "{owner} has {rows:row} and rank {rank}, so it has no inverse.",
        why="A row that is a combination of others adds nothing.",
        hint="Which row or column is a multiple of another, or a sum of others?",
        fix="Remove it, or use `np.linalg.lstsq` or `np.linalg.pinv`.",
    ),
    said(
        "not_square",
        "{owner} has {rows} rows and {columns} columns; only a square matrix has an inverse.",
        hint="Is it the matrix that you want?",
        fix="For a system of equations that has no single solution, use `np.linalg.lstsq`.",
    ),
    said(
        "no_values",
        "{owner} has no values (its shape is {shape}), so it has no largest or smallest.",
        hint="Which line removed them all?",
        fix="Handle the empty case before this line.",
    ),
    said(
        "one_number",
        "{owner} has {size:value}, but {kind} converts a single value.",
        hint="Do you want one of the values, or all of them converted?",
        fix="For all of them, use `.astype(…)`.",
    ),
    said(
        "item_not_number",
        "{owner} is {value}, which is not a number.",
        why="{reason}",
        hint="What should such a value count as?",
    ),
)

_MODELS = (
    said(
        "features_gaps",
        "{owner} has missing values in {places}. {model} accepts none.",
        hint="Should these rows be left out, or the gaps be filled?",
        fix="Use `.dropna()`, or `SimpleImputer` before the model.",
    ),
    said(
        "values_gaps",
        "{owner} has missing values: {count} of {size}. {model} accepts none.",
        hint="Should these rows be left out, or the gaps be filled?",
        fix="Leave the rows out of both the features and the target.",
    ),
    said(
        "one_dimension",
        "{owner} has shape {shape}: one dimension. The features need two: rows and columns.",
        why="A single feature is a table with one column.",
        hint="Are these {size} rows of one feature?",
        fix="If so, write {instead}.",
    ),
    said(
        "samples",
        "{features} has {rows:row}, and {target} has {values:value}.",
        why="Each row of the features needs one value of the target.",
        hint="Which line removed rows from only one of them?",
    ),
    said(
        "not_fitted",
        "{owner} is a {model} that has not been fitted, so {method} has nothing to work with.",
        why="A model learns in `.fit(…)`. Creating it again forgets what it learned.",
        hint="Was the cell that fits it run, and on this object?",
        fix="Call `.fit(…)` on {owner} first.",
    ),
    said(
        "text_features",
        "{columns} of {owner} is text; {value} is not a number.",
        why="This model calculates with numbers only.",
        hint="Is it a category, or a number that was read as text?",
        fix="Encode categories with `OneHotEncoder` or `pd.get_dummies`; leave the column out if it is not needed.",
    ),
    said(
        "unseen_label",
        "{wanted} was not among the labels in `fit`, which are {known}.",
        why="An encoder knows only the labels that it was fitted with.",
        hint="Is it a typing error, or does the new data have more labels?",
        fix="Fit on all labels that can occur.",
    ),
    said(
        "unknown_category",
        "Column {column} has {wanted}, and in `fit` it had only {known}.",
        why="An encoder knows only the categories that it was fitted with.",
        hint="Is it a typing error, or can new categories occur?",
        fix="If they can: `OneHotEncoder(handle_unknown='ignore')`.",
    ),
    said(
        "feature_names",
        "{owner} does not have the columns that the model was fitted with. {told}",
        why="In `fit` they were {before}; now they are {now}.",
        hint="Were the same steps applied to both tables?",
        fix="Prepare both tables by the same steps.",
    ),
    said(
        "feature_order",
        "{owner} has the columns that the model was fitted with, in another order.",
        why="In `fit` it was {before}; now it is {now}.",
        fix="Choose the columns in the order of `fit`.",
    ),
    said(
        "feature_count",
        "{owner} has {has:column}, and the {model} was fitted with {needs}.",
        why="Its shape is {shape}. A model needs the columns that it was fitted with, in the same order.",
        hint="Which columns are missing, or too many?",
        fix="Prepare both tables by the same steps.",
    ),
    said(
        "continuous",
        "{target} has values such as {value}, and {model} predicts classes.",
        why="A classifier needs labels, such as 0 and 1; numbers on a scale are for a regression.",
        hint="Do you want to predict a class or a number?",
        fix="For a number, use a regressor, such as `LinearRegression`.",
    ),
    said(
        "one_class",
        "All {size:value} of {target} are {value}.",
        why="A classifier learns to distinguish classes, so it needs at least two.",
        hint="Which line removed the other classes?",
    ),
    said(
        "class_for_model",
        "{owner} is a class; there is no model to work with yet.",
        why="Parentheses after the name create the model.",
        fix="Write {instead}.",
    ),
    said(
        "no_samples",
        "{owner} has no rows (its shape is {shape}).",
        hint="Which line removed them all?",
        fix="Handle the empty case before this line.",
    ),
    said(
        "folds",
        "The code asks for {folds} folds, but there are only {rows:row}.",
        why="Each fold needs at least one row.",
        hint="Is the table as long as you expect?",
        fix="Use fewer folds.",
    ),
    said(
        "mixed_targets",
        "{true} holds classes such as {true_value}, and {predicted} numbers such as {predicted_value}.",
        why="This score compares classes with classes.",
        hint="Are these probabilities, or a regression's predictions?",
        fix="Round probabilities to classes, or use a score for numbers.",
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (FailurePattern((), explanations=(*_ARRAYS, *_MODELS)),)

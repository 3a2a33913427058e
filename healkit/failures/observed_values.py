"""Sentences for facts of values and packages.

Each is for one `about` of `healkit.facts`, as in `observed_tables`.
"""

from __future__ import annotations

from healkit.failures.observed_tables import said
from healkit.failures.pattern import FailurePattern

_PACKAGES = (
    said(
        "package_other",
        "The module {wanted} is in the package {package}, which is not installed where this code ran.",
        why="The package has another name than the module.",
        fix="Install it with {install}; for a tool, check its grants with `%vault grant NAME`.",
    ),
    said(
        "package_same",
        "The package {wanted} is not installed where this code ran.",
        fix="Install it with {install}; for a tool, check its grants with `%vault grant NAME`.",
    ),
    said(
        "package_misspelt",
        "There is no module {wanted}. {found} is loaded, and its name is similar.",
        fix="If you mean {found}, import that.",
    ),
    said(
        "part_moved",
        "{owner} has no part {wanted} any more.",
        why="It was renamed or moved.",
        fix="Use {instead}.",
    ),
    said(
        "no_such_part",
        "{owner} is installed, and has no part {wanted}.",
        why="The part has another name, or belongs to another version of the package.",
        hint="Which version was the code written for?",
    ),
)

_PYTHON = (
    said(
        "no_processes",
        "The code tried to start a process. A worker starts no processes; threads work.",
        why="A process could outlive the tool, and do what the tool may not.",
        fix="Use threads: write `ThreadPoolExecutor()`, from `concurrent.futures`, in its place.",
    ),
    said(
        "divisor",
        "{owner} is {value}, so the code divides by zero.",
        hint="Can it be zero for valid data, or should it never be?",
        fix="Handle that case before this line.",
    ),
    said(
        "divisor_length",
        "{owner} is 0 because {given} is empty, so the code divides by zero.",
        hint="Can it be empty for valid data?",
        fix="Handle the empty case before this line.",
    ),
    said(
        "key_differs",
        "{owner} has no key {wanted}. It has {found}, {how}.",
        why="A key must be the same in every character, and of the same type.",
        hint="Where do the keys come from?",
        fix="Write {found}, or give all keys the same form when they are added.",
    ),
    said(
        "key_similar",
        "{owner} has no key {wanted}. The most similar one is {found}.",
        hint="Which key do you mean?",
        fix="If you mean {found}, use that.",
    ),
    said(
        "key_missing",
        "{owner} has no key {wanted}.",
        why="Its keys are {known}.",
        hint="Should the key be there by now, or is a missing one normal?",
        fix="Where a missing key is normal, use `.get(…)`, which gives `None` or a default.",
    ),
    said(
        "dict_empty",
        "{owner} has no key {wanted}: it is empty.",
        hint="Should the key be there by now, or is a missing one normal?",
        fix="Where a missing key is normal, use `.get(…)`, which gives `None` or a default.",
    ),
    said(
        "item_past_end",
        "{named}{owner} has {size:item}, but the code asks for index {asked}.",
        why="Indexes count from 0, so the last one is {last}.",
        hint="Where does the index come from?",
        fix="Stop one earlier, or loop over the items themselves.",
    ),
    said(
        "item_of_none",
        "{owner} is empty: there is no item at index {asked}.",
        hint="Why is it empty here?",
        fix="Handle the empty case before this line.",
    ),
    said(
        "operand_is_none",
        "{owner} is `None`, and the operation needs a value.",
        why="A function without `return` gives `None`, and so does `.get(…)` for a missing key.",
        hint="Where does {owner} get its value?",
    ),
    said(
        "text_and_number",
        "{sign} has two kinds of values: {number} is a number of type {kind}, and {text} is text.",
        why="Python joins two strings or adds two numbers; it does not guess which you mean.",
        hint="Should the result be text or a number?",
        fix="{ways}",
    ),
    said(
        "text_not_number",
        "{owner} is {value}, which {kind} cannot read.",
        why="{reason}",
        hint="Where does the text come from?",
        fix="Use {remedy}.",
    ),
    said(
        "none_to_number",
        "{owner} is `None`, and {kind} needs a number or text.",
        hint="Where should the value come from?",
        fix="Handle `None` before this line, or give a default.",
    ),
    said(
        "none_item",
        "{owner} is `None`, so nothing can be looked up in it.",
        hint="Where does {owner} get its value?",
        fix="Handle `None` before this line.",
    ),
    said(
        "none_loop",
        "{owner} is `None`, so there is nothing to iterate over.",
        hint="Where does {owner} get its value?",
        fix="Handle `None` before this line, or use an empty list.",
    ),
    said(
        "attribute_of_none_named",
        "{owner} is `None`, and has no {wanted}.",
        why="A search that finds nothing gives `None`, and so does a function without `return`.",
        hint="Where does {owner} get its value?",
        fix="Handle `None` before this line: `if … is not None:`.",
    ),
    said(
        "shadowed",
        "A variable hides the built-in {owner}; it holds {value}.",
        hint="Which line set it?",
        fix="Give the variable another name, and restore the built-in with {instead}.",
    ),
)

PATTERNS: tuple[FailurePattern, ...] = (FailurePattern((), explanations=(*_PACKAGES, *_PYTHON)),)

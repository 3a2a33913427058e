"""Words of a magic's line, with values from the notebook.

A `key=value` word is an argument, whose value is evaluated as Python in the notebook's namespace. In any other word,
`{name}` is replaced by that variable.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from healkit.commands.parsing import ASSIGNMENT, split_assignments, split_words
from healkit.errors import UsageInvalid, did_you_mean

_BRACES = re.compile(r"\{([A-Za-z_][\w.]*)\}")
#: Names that IPython adds to every notebook.
_IPYTHONS_OWN = {"In", "Out", "exit", "quit", "get_ipython", "open"}
#: JSON's words, for arguments copied from JSON.
_JSON_WORDS = {"true": True, "false": False, "null": None}


def expand(words: list[str], namespace: Mapping[str, Any]) -> list[str]:
    """Replace `{name}` in the words by that variable of the notebook, if it exists."""

    def value(match: re.Match[str]) -> str:
        return str(evaluate(match[1], namespace)) if match[1].split(".")[0] in namespace else match[0]

    return [_BRACES.sub(value, word) for word in words]


def take_assignments(words: list[str], namespace: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Separate the `key=value` words as arguments; each value is evaluated as Python in the notebook."""
    rest, assigned = split_assignments(words)
    arguments = {}
    for name, expression in assigned.items():
        braced = _BRACES.fullmatch(expression)  # `n={n}`, as in other magics; a set is not JSON anyway
        try:
            arguments[name] = evaluate(braced[1] if braced else expression, namespace)
        except UsageInvalid as error:
            raise UsageInvalid(f"{name}: {error.message}", hint=error.hint) from None
    return rest, arguments


def evaluate(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a Python expression in the user's namespace; raise `UsageInvalid` if it fails."""
    try:
        code = compile(expression, "<argument>", "eval", dont_inherit=True)
        return eval(code, {**_JSON_WORDS, **namespace})  # noqa: S307 - the user's own line, in the user's own kernel
    except NameError as error:
        names = [name for name in namespace if not name.startswith("_") and name not in _IPYTHONS_OWN]
        near = did_you_mean(str(error.name), names)
        raise UsageInvalid(f"{error}.{near}", hint=f"For text, put it in quotes: '{expression}'") from None
    except SyntaxError:
        raise UsageInvalid(
            f"{expression!r} is not Python.", hint=f"For text, put it in quotes: {expression!r}"
        ) from None
    except Exception as error:  # noqa: BLE001 - any exception of the user's expression, reported in one line
        raise UsageInvalid(f"{expression} raised {type(error).__name__}: {error}.") from None


def refuse(options: Namespace, flags: Iterable[str], why: str, hint: str) -> None:
    """Raise `UsageInvalid` if one of these flags was given; `why` follows its name."""
    for flag in flags:
        if getattr(options, flag) not in (None, False):
            raise UsageInvalid(f"--{flag.replace('_', '-')} {why}.", hint=hint)


def words_of(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """Split a magic's line into words; `key=value` words are unchanged, in all others `{name}` is replaced."""
    words = split_words(line)
    return [
        w if ASSIGNMENT.fullmatch(w) and not w.startswith("-") else expand([w], namespace)[0] for w in words
    ]

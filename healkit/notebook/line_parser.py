"""Argument parser of a magic.

IPython's `magic_arguments` prints a stack for a typing mistake, has no `--help`, and suggests no similar flag. This
one is argparse with those three fixed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from healkit.errors import UsageInvalid
from healkit.options import Option
from healkit.parsing import split_words, unknown, unquote

_BRACES = re.compile(r"\{([A-Za-z_][\w.]*)\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(?!=)(.*)", re.DOTALL)
#: JSON's words, for arguments that were copied from JSON.
_JSON_WORDS = {"true": True, "false": False, "null": None}


class HelpWanted(Exception):
    """`--help` was on the line; carries the text to print."""


class MagicParser(argparse.ArgumentParser):
    """argparse for one magic: errors are one line, and `--help` prints instead of leaving."""

    def __init__(self, name: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=name,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--help", "-h", action="store_true", help="print this help")

    def take(self, *rows: Option, for_what: str = "") -> None:
        """Add rows of the option table; for_what: the subcommand that they belong to, such as `for grant: `."""
        for option in rows:
            about: dict[str, Any] = {"dest": option.name, "default": option.default}
            about["help"] = (
                for_what + option.text + (f" (default: {option.default})" if option.default else "")
            )
            if option.type is bool:
                about["action"] = "store_true"
            else:
                about |= {"metavar": option.metavar or None, "choices": option.choices or None}
                about["type"] = str.upper if option.choices else option.type
                about["action"] = "append" if option.many else "store"
            self.add_argument(option.long_flag, **about)

    @property
    def flags(self) -> list[str]:
        """Every long flag, for completion and near matches."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    def flags_with_value(self) -> dict[str, list[str]]:
        """Return the flags that take a value, with the values they may take (empty: any)."""
        return {
            flag: [str(choice) for choice in action.choices or ()]
            for action in self._actions
            for flag in action.option_strings
            if action.nargs != 0
        }

    def error(self, message: str) -> NoReturn:
        """Raise `UsageInvalid`; called by argparse for what it cannot read."""
        raise UsageInvalid(f"{self.prog}: {message}.", hint=f"See {self.prog} --help.")

    def read(self, words: list[str]) -> argparse.Namespace:
        """Read the words as a namespace; raise `HelpWanted` or `UsageInvalid`."""
        if {"--help", "-h"} & set(words):
            raise HelpWanted(self.format_help())
        for word in words:
            if word.startswith("--") and len(word) > 2 and word.partition("=")[0] not in self.flags:
                raise unknown(f"flag of {self.prog} called", word.partition("=")[0], self.flags)
        return self.parse_args([unquote(word) for word in words])


def expand(words: list[str], namespace: Mapping[str, Any]) -> list[str]:
    """Replace `{name}` in the words by that variable of the notebook, where there is one."""

    def value(match: re.Match[str]) -> str:
        return str(evaluate(match[1], namespace)) if match[1].split(".")[0] in namespace else match[0]

    return [_BRACES.sub(value, word) for word in words]


def take_assignments(words: list[str], namespace: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Split off the `key=value` words as arguments, each value read as Python in the notebook."""
    rest, arguments = [], {}
    for word in words:
        match = None if word.startswith("-") else _ASSIGNMENT.fullmatch(word)
        if match is None:
            rest.append(word)
            continue
        name, expression = match[1], match[2]
        braced = _BRACES.fullmatch(expression)  # `n={n}`, as in other magics; a set of one is not JSON anyway
        try:
            arguments[name] = evaluate(braced[1] if braced else expression, namespace)
        except UsageInvalid as error:
            raise UsageInvalid(f"{name}: {error.message}", hint=error.hint) from None
    return rest, arguments


def evaluate(expression: str, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a Python expression in the user's namespace; raise `UsageInvalid` where it has none."""
    try:
        code = compile(expression, "<argument>", "eval")
        return eval(code, {**_JSON_WORDS, **namespace})  # noqa: S307 - the user's own line, in the user's own kernel
    except NameError as error:
        raise UsageInvalid(f"{error}.", hint=f"For text, put it in quotes: '{expression}'") from None
    except SyntaxError:
        raise UsageInvalid(
            f"{expression!r} is not Python.", hint=f"For text, put it in quotes: {expression!r}"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever the user's expression raises, said on one line
        raise UsageInvalid(f"{expression} raised {type(error).__name__}: {error}.") from None


def words_of(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """Split a magic's line into words; `key=value` ones stay as typed, in the others `{name}` is replaced."""
    words = split_words(line)
    return [
        w if _ASSIGNMENT.fullmatch(w) and not w.startswith("-") else expand([w], namespace)[0] for w in words
    ]

"""Completion: flags, subcommands, tools and arguments.

IPython calls every matcher at each Tab. This one only answers on a line that begins with one of healkit's magics, and
never raises. If a database cannot be opened, there are no suggestions, instead of a traceback under the cursor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, context_matcher

from healkit.commands.parsing import split_words
from healkit.faces.notebook import magic_parsers

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

    from healkit.app import Healkit


_LINE = re.compile(
    r"\s*(?:[\w.,\s]+=\s*)?%{1,2}(?P<magic>" + "|".join(magic_parsers.PARSERS) + r")\s(?P<rest>.*)\Z",
    re.DOTALL,
)
_KINDS = {"flag": "option", "tool": "function", "argument": "param", "word": "keyword"}


@context_matcher(identifier="healkit")
def healkit_matcher(context: CompletionContext) -> dict[str, Any]:
    """Complete the line before the cursor; called by IPython's completer."""
    line = context.text_until_cursor
    match = _LINE.match(line)
    if match is None:
        return {"completions": [], "suppress": False}
    rest = match["rest"]
    words = split_words(rest, partial=True)
    fragment = "" if not rest or rest[-1].isspace() or not words else words[-1]
    done = words[:-1] if fragment else words
    try:
        suggestions = _suggest(match["magic"], done, fragment)
    except Exception:  # noqa: BLE001 - see above
        suggestions = []
    completions = [
        SimpleCompletion(text, type=_KINDS[kind]) for text, kind in suggestions if text.startswith(fragment)
    ]
    return {"completions": completions, "matched_fragment": fragment, "suppress": bool(completions)}


def _suggest(magic: str, done: list[str], fragment: str) -> list[tuple[str, str]]:
    """List all possible completions, as (text, kind)."""
    parser = magic_parsers.PARSERS[magic]()
    valued = parser.flags_with_value()
    if done and done[-1] in valued:
        return [(text, "word") for text in _values(done[-1], valued[done[-1]])]
    used = set(done)
    flags = [(flag, "flag") for flag in parser.flags if flag not in used] if fragment.startswith("-") else []
    plain = [w for i, w in enumerate(done) if not w.startswith("-") and (i == 0 or done[i - 1] not in valued)]
    return flags or _positional(magic, plain)


def _positional(magic: str, plain: list[str]) -> list[tuple[str, str]]:
    if magic == "healkit":
        return _of_healkit(plain)
    if magic == "vault":
        if not plain:
            return [(name, "word") for name in magic_parsers.VAULT_COMMANDS]
        return _tools() if len(plain) == 1 and magic_parsers.VAULT_COMMANDS.get(plain[0], (0,))[0] else []
    if magic in {"executions", "summarize", "suggest"}:
        return []
    if magic == "views":
        return [] if plain else _views()
    if not plain:
        return _tools()
    if magic == "run_tool":
        assigned = {word.partition("=")[0] for word in plain[1:] if "=" in word}
        return [(f"{name}=", "argument") for name in _argument_names(plain[0]) if name not in assigned]
    return []


def _of_healkit(plain: list[str]) -> list[tuple[str, str]]:
    if not plain:
        return [(name, "word") for name in magic_parsers.HEALKIT_COMMANDS]
    if plain[0] != "requests" or len(plain) > 2:
        return []
    if len(plain) == 1:
        return [(name, "word") for name in magic_parsers.REQUEST_COMMANDS]
    request_store = _healkit().requests
    requests = request_store.list() if plain[1] == "show" else request_store.pending()
    return [(str(request.id), "argument") for request in requests if plain[1] != "list"]


def _values(flag: str, choices: list[str]) -> list[str]:
    if choices:
        return choices
    if flag == "--with":
        from healkit.parts.heal.advisor import advisor_names

        return [*advisor_names(), "person"]
    if flag in {"--tool", "--after"}:
        return [name for name, _ in _tools()]
    if flag == "--persona":
        return sorted({entry.persona for entry in _healkit().vault.list()})
    return []


def _healkit() -> Healkit:
    from healkit.faces.defaults import (
        default_healkit,  # late: a notebook without completions has not imported it
    )

    return default_healkit()


def _views() -> list[tuple[str, str]]:
    return [(view.name, "argument") for view in _healkit().views.list()]


def _tools() -> list[tuple[str, str]]:
    return [(name, "tool") for name in _healkit().vault.names()]


def _argument_names(tool_name: str) -> list[str]:
    return list(_healkit().vault.get(tool_name).input_schema.get("properties", {}))

"""Consent policy: when a patch is applied without asking.

Three answers. *deny*: the patch does not reach the vault, and there is no question. *allow*: it is applied. *ask*: it
becomes a patch request, which waits for the user's consent. Deny beats allow, and allow beats ask, wherever each comes
from.

Only a cure can be allowed ahead: an example says what is right, and the patch does that and breaks nothing else. A
patch that merely no longer fails, or that hides the failure, is always asked about, whatever the policy says: allowing
it would accept a wrong tool in silence. A patch that was never validated is not allowed either.

A pattern names tools (`report_*`), tools of a persona (`teacher/report_*`), or those that an MCP client proposes a
patch of (`claude-code/*/report_*`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Literal

from healkit.config import Config
from healkit.core.contracts.vault import DEFAULT_PERSONA
from healkit.parts.heal.records import RequestAuthor, Verdict

Decision = Literal["deny", "allow", "ask"]


def decide(
    tool_name: str,
    verdict: Verdict | Literal[""],
    author: RequestAuthor,
    config: Config,
    *,
    persona: str = DEFAULT_PERSONA,
    client: str = "",
    auto: bool = False,
    watched: bool = False,
) -> Decision:
    """Decide on a patch of that tool.

    verdict: of its validation, empty without one. author: a person who writes a patch consents to it thereby, if it
    cures. client: the name of the MCP client that proposes it, if one does. auto: the user allowed this call's patches
    (`--auto`). watched: it is for a person whatever was allowed: the tool changes something outside, or the patch
    reaches further than the code that it replaces.
    """
    if denied(tool_name, config, persona, client):
        return "deny"
    if verdict != "cured":
        return "ask"
    if author == "person":
        return "allow"
    allowed = auto or _matches(config.heal_allow, client, persona, tool_name)
    return "allow" if allowed and not watched else "ask"


def denied(tool_name: str, config: Config, persona: str = DEFAULT_PERSONA, client: str = "") -> bool:
    """Return True for a tool that healing may never patch, so that no patch need be sought."""
    return _matches(config.heal_deny, client, persona, tool_name)


def _matches(patterns: Iterable[str], *found: str) -> bool:
    """Return whether a pattern fits the client, the persona and the tool; parts that it leaves out fit all."""
    pattern_parts = (["*", "*", *pattern.rsplit("/", 2)][-3:] for pattern in patterns)
    return any(all(map(fnmatch.fnmatchcase, found, parts)) for parts in pattern_parts)

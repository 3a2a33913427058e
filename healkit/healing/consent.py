"""The consent policy: whether a patch may be applied unasked.

Three answers. *deny*: nothing of it reaches the vault, and nobody is asked. *allow*: it is applied. *ask*: it becomes a
patch request, which waits for the user's word. Deny beats allow, and allow beats ask, wherever each comes from.

What can be allowed ahead is a cure: somebody said what is right, and the patch does that and breaks nothing else. A
patch that only no longer fails, or that hides the failure, is always asked about, whatever the policy says, because
allowing it would be to accept a tool that is wrong in silence. Nor is a patch that nobody validated ever allowed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Literal

from healkit.config import Config
from healkit.contracts.healing import Verdict
from healkit.contracts.requests import RequestAuthor

Decision = Literal["deny", "allow", "ask"]


def decide(
    tool_name: str,
    verdict: Verdict | Literal[""],
    author: RequestAuthor,
    config: Config,
    *,
    auto: bool = False,
) -> Decision:
    """What the policy says to a patch of that tool.

    verdict: what its validation found, empty where there was none. author: whose patch it is; a person who writes one
    themselves has thereby consented to it, as far as it cures. auto: the user allowed this call's patches (`--auto`).
    """
    if denied(tool_name, config):
        return "deny"
    if verdict != "cured":
        return "ask"
    allowed = auto or config.heal_auto or author == "person" or _matches(tool_name, config.heal_allow)
    return "allow" if allowed else "ask"


def denied(tool_name: str, config: Config) -> bool:
    """Whether no patch of that tool is ever applied by healing, so that none need be looked for."""
    return _matches(tool_name, config.heal_deny)


def _matches(tool_name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(tool_name, pattern) for pattern in patterns)

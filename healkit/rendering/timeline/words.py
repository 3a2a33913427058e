"""Words of a timeline, as tables."""

from __future__ import annotations

from typing import Any

from healkit.contracts.healing import VERDICTS, VerdictText
from healkit.rendering import plain

#: Author → the beginning of a sentence.
AUTHORS = {
    "person": "A person",
    "rule": "A rule",
    "search": "The search",
    "model": "The language model",
    "agent": "An outside agent",
}
ORIGINS = {
    "failing": "the recorded failure",
    "passing": "a recorded run that passed",
    "declared": "an example of the tool's",
    "answered": "an answer that was given",
}
#: Outcome of a check → its mark and its words.
OUTCOMES = {
    "passed": ("✓", "passed"),
    "wrong": ("✗", "returned something else"),
    "raised": ("✗", "raised"),
    "timeout": ("✗", "did not end in time"),
    "died": ("✗", "took its process with it"),
    "not_run": ("–", "was not run"),
}
#: Decision on a patch → the tone, and the sentence.
DECISIONS = {
    "kept": ("good", "{patch} was accepted: {revision} is the active revision."),
    "accepted": ("good", "{patch} was accepted: {revision} is the active revision."),
    "declined": ("warn", "{patch} was declined; nothing was changed."),
    "denied": ("warn", "{patch} is forbidden by the policy; nothing was changed."),
    "pending": ("warn", "{patch} is waiting for approval, as request {request}."),
    "overtaken": ("warn", "{patch} was overtaken: the tool was changed meanwhile. Nothing is lost."),
}
#: Outcome of a healing in its last event → the same in words.
ENDINGS = {
    "kept": "patch accepted",
    "shown": "patch found, not applied",
    "pending": "a patch is waiting for approval",
    "declined": "patch declined",
    "denied": "the policy forbids the patch",
    "rolled_back": "patch rolled back",
    "not_cured": "no fix found",
    "healthy": "nothing fails any more",
    "not_mendable": "changing the code does not help",
    "halted": "halted by the policy",
    "stopped": "stopped",
}
PRECONDITIONS = {
    "tool_found": "the tool was found",
    "code_hash": "its code is what was stored",
    "code_parses": "the code can be read",
    "arguments": "the arguments fit the tool",
    "isolation": "it can be restricted here",
}

_VALUE_MAX_CHARS, _MESSAGE_MAX_CHARS = 300, 600


def short(value: Any, limit: int = _VALUE_MAX_CHARS) -> str:
    """Write a recorded value on one line; text as it is, all else as Python writes it."""
    return plain.one_line(value if isinstance(value, str) else plain.recorded_text(value, limit), limit)


def sentence(text: Any) -> str:
    """Write a recorded message on one line, with a full stop."""
    said = plain.one_line(str(text), _MESSAGE_MAX_CHARS)
    return said if not said or said[-1] in ".!?…" else f"{said}."


def verdict_text(verdict: str) -> VerdictText:
    """Return how a verdict is shown; an unknown one is its own word."""
    return next((text for known, text in VERDICTS.items() if known == verdict), VerdictText(verdict, "?", ""))


def check_row(result: dict[str, Any]) -> dict[str, str]:
    """Write one checked assertion as a row: what was held, and how it went."""
    mark, came = OUTCOMES.get(str(result.get("outcome")), ("?", short(result.get("outcome", "?"))))
    origin = ORIGINS.get(str(result.get("origin")), short(result.get("origin", "")))
    row = {"mark": mark, "origin": origin, "outcome": came, "what": "", "wanted": "", "got": ""}
    if "call" in result:
        row["what"] = short(result["call"])
    elif isinstance(result.get("arguments"), dict):
        row["what"] = ", ".join(
            f"{name}={plain.one_line(plain.recorded_text(value, 120), 120)}"
            for name, value in result["arguments"].items()
        )
    elif "arguments" in result:
        row["what"] = short(result["arguments"])
    if "wanted" in result:
        row["wanted"] = short(result["wanted"])
    if "got" in result or "error" in result:
        row["got"] = short(result.get("error") or result.get("got"))
    return row

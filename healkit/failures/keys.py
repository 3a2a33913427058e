"""Keys that a dict does not have."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("KeyError",),
        r"^(?P<key>.*)$",
        explanations=(
            ExplanationText(
                "key_near",
                what="There is no key {key}.",
                why=(
                    "There is one much like it: {near}. Keys must be alike in every letter, capitals and spaces too, and the text "
                    "`'12'` is another key than the number `12`."
                ),
                hint="Where does the key come from, and where were the keys put in?",
                fix="If {near} was meant, use that.",
                needs="near",
                example="prices = {'apple': 3}\nprices['aple']",
            ),
            ExplanationText(
                "key_known",
                what="There is no key {key}.",
                why=(
                    "The keys there are begin with {known}. Reading a key that is not there is an error, also in `d[key] += 1`, which "
                    "reads before it writes."
                ),
                hint="Should the key be there by now, or is this the first time?",
                fix="Use `d.get(key, 0)` where a missing key is a normal case, or put the key in first.",
                needs="known",
                example="prices = {'apple': 3}\nprices['zzyzx']",
            ),
            ExplanationText(
                "key",
                what="There is no key {key}.",
                why="Reading a key that is not there is an error, also in `d[key] += 1`, which reads before it writes.",
                hint="Which keys are there at this line? `list(d)` shows them.",
                fix="Use `d.get(key, 0)` where a missing key is a normal case, or put the key in first.",
                example="counts = {}\ncounts['ada'] += 1",
            ),
        ),
    ),
)

"""The language model as an advisor: optional, bounded, and only ever a source of candidates.

`advisor` is the service. Below it, in the order of the work: `access` finds model and key, `rounds` goes from question
to question, `prompt` says what is sent, `SecretMap` hides, `asking` waits for a busy server while `progress` says
so, `exchange` is one request with `sse` reading its stream and `refusals` its errors, `openai_chat` and
`anthropic_messages` are the two protocols, `answers` reads what came, and `spending` adds up.
"""

from __future__ import annotations

from healkit.healing.advisors.model.advisor import ModelAdvisor
from healkit.healing.advisors.model.endpoint import Availability
from healkit.healing.advisors.model.progress import Progress

__all__ = ["Availability", "ModelAdvisor", "Progress"]

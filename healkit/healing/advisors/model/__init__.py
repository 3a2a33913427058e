"""Language model as an advisor: an optional, bounded source.

`advisor` is the service. It uses `model_endpoint` (model, address, key), `prompt` (the question, with a `SecretMap`),
`client` (requests, retries, Stop) and `answer_parser` (code and reason from an answer). Below the client are
`transport` (one request over httpx), `api_errors` (refusals) and `protocol`, the seam of the two adapters `openai_chat`
and `anthropic_messages`.
"""

from __future__ import annotations

from healkit.healing.advisors.model.advisor import ModelAdvisor
from healkit.healing.advisors.model.model_endpoint import Availability
from healkit.healing.advisors.model.protocol import Progress

__all__ = ["Availability", "ModelAdvisor", "Progress"]

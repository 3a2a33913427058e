"""Language model as an advisor: an optional, bounded source.

`advisor` is the service. It uses `prompt` (the question, with a `SecretMap`) and `answer_parser` (code and reason from
an answer), and asks by `healkit.language_models`.
"""

from __future__ import annotations

from healkit.healing.advisors.model.advisor import ModelAdvisor
from healkit.language_models.model_endpoint import Availability
from healkit.language_models.protocols import Progress

__all__ = ["Availability", "ModelAdvisor", "Progress"]

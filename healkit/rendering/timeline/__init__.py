"""A run as a story: step by step, in plain words.

`story_of` makes plain data of a run folder's events; the card and the widget draw the same data, and neither knows an
event. So what a person steps through needs no kernel, no vault and no database.
"""

from __future__ import annotations

from healkit.rendering.timeline.card import card
from healkit.rendering.timeline.telling import story_of

__all__ = ["card", "story_of"]

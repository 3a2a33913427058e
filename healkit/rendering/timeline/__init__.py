"""Timeline of a run: step by step, in plain words.

`story_of` makes plain data of a run folder's events; the card and the widget draw the same data, and neither knows an
event. So stepping through a run needs no kernel, no vault and no database.
"""

from __future__ import annotations

from healkit.rendering.timeline.card import card
from healkit.rendering.timeline.telling import story_of

__all__ = ["card", "story_of"]

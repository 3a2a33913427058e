"""Search-based repair: edits by rule, tried by the thousand."""

from healkit.healing.advisors.search.advisor import SearchAdvisor

__all__ = ["SearchAdvisor"]

"""Search-based repair: edits by rule, tried by the thousand."""

from healkit.healing.search.advisor import SearchAdvisor

__all__ = ["SearchAdvisor"]

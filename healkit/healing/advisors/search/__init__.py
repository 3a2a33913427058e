"""Search-based repair: edits made by operators, validated."""

from healkit.healing.advisors.search.advisor import SearchAdvisor

__all__ = ["SearchAdvisor"]

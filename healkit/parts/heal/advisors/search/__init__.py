"""Search-based repair: edits made by operators, validated."""

"""Kinds of edits, about a hundred, in one `table`."""

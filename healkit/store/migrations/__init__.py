"""Numbered migrations; a released one is never edited.

To change a table, change `store/models.py` and add `versions/<next number>_<what>.py`; a test compares the
two.
"""

"""Numbered migrations; a released one is never edited.

To change a table, change `core/store/models.py` and add `versions/r<next number>_<what>.py`; a test compares the two.
The `r` is for *release*: numbers without it are of databases that were made before the first one.
"""

"""Numbered migrations; a released one is never edited.

To change a table, change `core/store/models.py` and add `versions/r<next number>_<what>.py`; a test compares the two.
The `r` means *release*: numbers without it belong to databases from before the first release.
"""

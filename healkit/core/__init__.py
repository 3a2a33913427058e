"""Core: one execution, restricted, on record, shown.

Nothing here knows a part or a face.
"""

"""Frozen data that crosses borders.

Only the standard library and msgspec are imported here, because workers import these modules too.
"""

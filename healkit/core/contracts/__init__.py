"""Frozen data that crosses borders.

Standard library and msgspec only: a worker imports it too.
"""

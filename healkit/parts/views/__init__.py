"""Frames that tools were given or returned.

They are kept as files, and read by name.
"""

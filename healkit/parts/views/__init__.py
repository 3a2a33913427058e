"""Frames that tools were given or returned, kept as files and read by name."""

"""Faces: user interfaces, and interfaces for programs.

Faces parse input, call the core and show results.
"""

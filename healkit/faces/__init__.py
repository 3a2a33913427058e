"""Faces: what people and other programs touch.

Faces parse, call and show.
"""

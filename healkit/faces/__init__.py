"""What people and other programs touch.

Faces parse, call and show.
"""

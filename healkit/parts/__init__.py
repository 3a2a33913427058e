"""What hangs from the core.

Each folder can be left out, and the rest works.
"""

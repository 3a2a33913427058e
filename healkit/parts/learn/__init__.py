"""Learning from traces.

No execution waits for learning: everything is computed later, from the log alone, and can be computed again.
"""

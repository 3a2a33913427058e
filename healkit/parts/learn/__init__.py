"""Learning from traces.

Nothing of it is on the way of an execution: all is computed later, from the log alone, and can be computed again.
"""

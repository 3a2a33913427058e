"""Execution path: executor, router, recorder, runs."""

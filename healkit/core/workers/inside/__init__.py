"""Code that only runs in the worker process."""

"""Code that runs in the worker process only."""

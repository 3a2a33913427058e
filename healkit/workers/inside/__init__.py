"""What runs in the worker process, and nothing else does."""

"""The collector: a Jupyter Server extension, and a server of its own."""

"""Notebook face: extension, magics, completion, live panels."""

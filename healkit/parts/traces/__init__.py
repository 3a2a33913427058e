"""Traces: clean, written as they happen, sent once."""

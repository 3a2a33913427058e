"""Core: restricted executions, their records and display.

The core does not import parts or faces.
"""

"""Run folders, and the audit of decisions.

A folder has `trace.jsonl` and the manifest.
"""

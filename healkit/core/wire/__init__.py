"""Bytes that cross to a worker and back.

- `framing`: messages as frames; `claims`: bounds of what one may hold; `encoding`: values as JSON
- `record_text`: texts of a record
"""

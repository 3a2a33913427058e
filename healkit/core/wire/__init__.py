"""Messages that cross to a worker and back.

- `framing`: messages as frames; `claims`: limits of what one may contain; `encoding`: values as JSON
- `record_text`: texts of a record
"""

"""Server-sent events, read from bytes as they come.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. Names, ids and
retry times of events are skipped: both protocols repeat them in the data.
"""

from __future__ import annotations

import codecs


class EventStream:
    """Decoder that returns the data of each event once its empty line has come; a cut event is dropped."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._tail: list[str] = []
        self._data: list[str] = []
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of the events that these bytes complete; bytes may be cut anywhere."""
        text = self._decode(chunk)
        if self._after_cr and text:
            text = text.removeprefix("\n")  # the second half of a line end that was cut in two
            self._after_cr = False
        if chunk.endswith(b"\r"):
            self._after_cr = True
        if "\n" not in text and "\r" not in text:
            self._tail.append(text)
            return []
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        lines[0] = "".join((*self._tail, lines[0]))
        self._tail = [rest]
        return [data for line in lines if (data := self._line(line)) is not None]

    def _line(self, line: str) -> str | None:
        """Read one line; return the event's data at the empty line that ends it."""
        if not line:
            data, self._data = self._data, []
            return "\n".join(data) if data else None
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None

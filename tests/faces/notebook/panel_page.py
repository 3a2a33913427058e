"""Page of a panel: asks by messages, and reads each answer."""

from __future__ import annotations

import json
import re
from typing import Any

from waiting import wait_until

from healkit.faces.notebook.widgets.panel import Panel

#: What no face may show: an internal class, an address, an unexpected internal error.
OURS = re.compile(r"<healkit\.| object at 0x|PANEL_ERROR")


class Page:
    """Asks a panel by messages, as its page does, and reads each answer as the page gets it."""

    def __init__(self, panel: Panel) -> None:
        self.panel, self.came, self.asked = panel, dict[str, str](), 0
        panel.send = self._take  # type: ignore[method-assign]  # what goes out to the page

    def _take(self, content: Any, _buffers: Any = None) -> None:
        self.came[str(content.get("id"))] = json.dumps(content, ensure_ascii=False)

    def answer(self, op: str, args: Any) -> dict[str, Any]:
        self.asked += 1
        self.panel._received(None, {"op": op, "id": str(self.asked), "args": args}, [])
        wait_until(lambda: str(self.asked) in self.came)
        shown = self.came.pop(str(self.asked))
        assert OURS.search(shown) is None, (op, args, shown)
        found: dict[str, Any] = json.loads(shown)
        return found

    def ask(self, op: str, **args: Any) -> Any:
        found = self.answer(op, args)
        assert "error" not in found, found["error"]
        return found["value"]

    def refused(self, op: str, args: Any) -> str:
        """Return the sentence by which it was refused; it names the next step."""
        found = self.answer(op, args)["error"]
        assert found["message"]
        return f"{found['message']} {found['hint']}"

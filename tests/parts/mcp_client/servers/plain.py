"""Server of the older protocol in plain Python.

`plain.py MODE` chooses how it misbehaves:

- `ok`: it does not; it lists its tools in pages, and has one more tool after each call of `first`.
- `chatty`: it also prints lines that are not messages.
- `garbage`: it prints nothing but such lines.
- `mute`: it never answers.
- `clash`: two of its tools get the same name in Python.
- `endless`: its pages have no end.
- `broken`: it answers calls with an invalid result.
- `leaves`: it ends at once.
- `stubborn`: it continues after its stdin is closed.
"""

from __future__ import annotations

import json
import sys
import time

mode = sys.argv[1]
names = ["first", "second-tool", "3rd", "import"] if mode != "clash" else ["read-file", "read_file"]


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method: str, params: dict) -> dict | None:
    if method == "initialize":
        info = {"name": "plain", "version": "1"}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": info,
        }
    if method == "tools/list":
        page = int(params.get("cursor") or 0)
        tool = {
            "name": names[page % len(names)],
            "inputSchema": {"type": "object", "properties": {"x": True}},
        }
        more = page + 1 < len(names) or mode == "endless"
        return {"tools": [tool], **({"nextCursor": str(page + 1)} if more else {})}
    if method == "tools/call":
        if mode == "broken":
            return {"content": "not a list"}
        return {"content": [{"type": "text", "text": json.dumps({"called": params["name"]})}]}
    return None


if mode == "leaves":
    print("no licence", file=sys.stderr)
    sys.exit(1)
if mode in {"chatty", "garbage"}:
    print("Welcome!\n{", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if mode in {"garbage", "mute"} or "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        send(id=message["id"], error={"code": -32601, "message": "no such method"})
        continue
    send(id=message["id"], result=result)
    if message["method"] == "tools/call" and message["params"]["name"] == "first":
        names.append(f"more_{len(names)}")
        send(method="notifications/tools/list_changed")
while mode == "stubborn":
    time.sleep(1)

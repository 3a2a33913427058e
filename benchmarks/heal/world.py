"""World of the set `calls`: functions, vault tools, files.

It is the same in every run.

A shop with weather, users, web pages, a ledger, jobs and a queue. `reset` brings it back to its beginning; `effects`
are the sends, payments and deletions since then, and `made` counts every call that was really made.
"""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Folder that tools of the set are granted to read; `$FILES` in code and examples.
FILES = Path(__file__).parent / "files"

_PRODUCTS: dict[str, dict[str, Any]] = {
    "tea": {"price": 4.0, "stock": 12, "category": "drinks", "weight_kg": 0.25},
    "coffee": {"price": 7.5, "stock": 3, "category": "drinks", "weight_kg": 0.5},
    "cocoa": {"price": 5.0, "stock": 0, "category": "drinks", "weight_kg": 0.4},
    "mug": {"price": 11.0, "stock": 40, "category": "kitchen", "weight_kg": 0.35},
    "kettle": {"price": 49.0, "stock": 5, "category": "kitchen", "weight_kg": 1.8},
    "spoon": {"price": 1.2, "stock": 150, "category": "kitchen", "weight_kg": 0.05},
    "lamp": {"price": 35.0, "stock": 7, "category": "home", "weight_kg": 2.1},
}
_WEATHER: dict[str, list[tuple[float, float, float, str]]] = {  # °C, km/h, mm, sky
    "Bern": [
        (12.0, 10.0, 0.0, "clear"), (9.5, 22.0, 4.2, "rain"),
        (7.0, 30.0, 11.0, "rain"), (11.0, 8.0, 0.0, "cloudy"),
    ],
    "Geneva": [
        (15.0, 35.0, 0.0, "clear"), (14.0, 48.0, 0.0, "clear"),
        (13.0, 12.0, 1.1, "rain"), (16.0, 5.0, 0.0, "clear"),
    ],
    "Chur": [
        (-3.0, 5.0, 2.0, "snow"), (-6.5, 3.0, 0.0, "clear"),
        (0.0, 15.0, 6.0, "snow"), (2.5, 9.0, 0.0, "cloudy"),
    ],
    "Lugano": [
        (22.0, 4.0, 0.0, "clear"), (24.5, 6.0, 0.0, "clear"),
        (19.0, 40.0, 25.0, "storm"), (21.0, 7.0, 0.5, "rain"),
    ],
}  # fmt: skip
_USERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Keller", "email": "ada@example.org", "city": "Bern", "active": True, "boss": None},
    {"id": 2, "name": "Beat Frei", "email": "beat@example.org", "city": "Chur", "active": False, "boss": 1},
    {"id": 3, "name": "Cleo Roth", "email": "cleo@example.org", "city": "Bern", "active": True, "boss": 1},
    {"id": 4, "name": "Dora Wyss", "email": "", "city": "Lugano", "active": True, "boss": 3},
    {"id": 5, "name": "Emil Graf", "email": "emil@example.org", "city": "Geneva", "active": True, "boss": 3},
    {"id": 6, "name": "Fay Lang", "email": "fay@example.org", "city": "Bern", "active": False, "boss": 4},
    {"id": 7, "name": "Gian Caduff", "email": "gian@example.org", "city": "Chur", "active": True, "boss": 6},
]
_ORDERS: dict[int, list[tuple[str, int, str]]] = {  # product, quantity, state
    1: [("tea", 2, "paid"), ("mug", 1, "open"), ("tea", 1, "paid"), ("lamp", 1, "cancelled"), ("spoon", 6, "paid")],
    2: [("kettle", 1, "open")],
    3: [("coffee", 3, "paid"), ("cocoa", 2, "cancelled"), ("tea", 5, "open")],
    4: [],
    5: [("lamp", 2, "paid"), ("mug", 4, "paid")],
}  # fmt: skip
_LEDGER: dict[str, list[tuple[str, str, float]]] = {  # date, kind, amount
    "CH-1": [
        ("2024-01-05", "in", 500.0), ("2024-01-20", "out", 120.5),
        ("2024-02-02", "out", 60.0), ("2024-02-28", "in", 80.0),
    ],
    "CH-2": [("2024-01-11", "in", 50.0), ("2024-03-01", "out", 75.0)],
    "CH-3": [],
    "CH-4": [
        ("2023-12-31", "in", 1000.0), ("2024-02-10", "out", 999.0),
        ("2024-02-11", "fee", 1.5), ("2024-03-15", "in", 20.0),
    ],
    "CH-5": [
        ("2024-01-02", "out", 10.0), ("2024-01-03", "out", 5.0),
        ("2024-01-04", "in", 100.0), ("2024-01-05", "out", 90.0),
    ],
    "CH-6": [("2024-02-29", "fee", 2.5)],
    "CH-7": [("2024-01-01", "in", 20.0), ("2024-01-02", "out", 15.0), ("2024-01-03", "in", 15.0)],
}  # fmt: skip
_RATES = {"CHF": 1.0, "EUR": 0.95, "USD": 0.88, "JPY": 0.006}
_PAGES: dict[str, tuple[int, Any]] = {
    "https://api.example.org/status": (200, {"ok": True, "version": "2.4.1"}),
    "https://api.example.org/items?page=1": (200, {"items": [3, 8, 1], "next": "https://api.example.org/items?page=2"}),
    "https://api.example.org/items?page=2": (200, {"items": [9], "next": "https://api.example.org/items?page=3"}),
    "https://api.example.org/items?page=3": (200, {"items": [4, 4], "next": None}),
    "https://api.example.org/one": (200, {"items": [7], "next": None}),
    "https://api.example.org/empty": (200, {"items": [], "next": None}),
    "https://api.example.org/two": (200, {"items": [2, "a"], "next": "https://api.example.org/one"}),
    "https://api.example.org/old": (301, "https://api.example.org/one"),
    "https://api.example.org/older": (301, "https://api.example.org/old"),
    "https://api.example.org/gone": (410, "gone"),
    "https://api.example.org/down": (503, "try again"),
}  # fmt: skip
_JOBS = {"index": ["running", "running", "done"], "backup": ["queued", "running", "failed"], "mail": ["done"],
         "report": ["queued", "queued", "running", "done"], "stuck": ["running"] * 30}  # fmt: skip
_QUEUES: dict[str, list[Any]] = {"numbers": [4, 9, 2], "words": ["tea", "", "mug"], "empty": [], "levels": [1, 5, 5, 3],
                                 "mixed": [10, -3, 6, -1, 2]}  # fmt: skip

#: Vault tools that tools of the set call.
TOOLS = {
    "tax": """
RATES = {"food": 0.026, "normal": 0.081, "hotel": 0.038}


def tax(amount: float, kind: str) -> float:
    return round(amount * RATES[kind], 2)
""",
    "convert": """
def convert(amount: float, source: str, target: str) -> float:
    return round(amount * mcp.host.rate(source=source, target=target), 2)
""",
    "shipping": """
def shipping(weight_kg: float, country: str) -> float:
    base = 7.0 if country == "CH" else 15.0
    return base + (3.0 if weight_kg > 2 else 0.0)
""",
    "is_holiday": """
DAYS = {"01-01", "08-01", "12-25", "12-26"}


def is_holiday(date: str) -> bool:
    return date[5:] in DAYS
""",
    "notify": """
def notify(user_id: int, text: str) -> dict:
    user = mcp.host.user(user_id=user_id)
    return mcp.host.send(to=user["email"], text=text)
""",
}


class World:
    """World with its state; `install` lets a Healkit's tools call it."""

    def __init__(self) -> None:
        self.made: collections.Counter[str] = collections.Counter()
        self.reset()

    def reset(self) -> None:
        """Begin anew: no effects, each job and queue at its beginning; `made` goes on."""
        self.effects: list[tuple[Any, ...]] = []
        self._asked: collections.Counter[str] = collections.Counter()

    def install(self, healkit: Any) -> None:
        """Provide the functions and add the vault tools."""
        for name in dir(self):
            if name.startswith("on_"):
                healkit.provide(self._counted(getattr(self, name)), name.removeprefix("on_"))
        for name, code in TOOLS.items():
            healkit.vault.add(name, code)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.made[function.__name__.removeprefix("on_")] += 1
            return function(*args, **kwargs)

        return counted

    def on_price(self, product: str) -> float:
        """Price of a product in CHF."""
        return _PRODUCTS[product]["price"]

    def on_stock(self, product: str) -> int:
        """Number of pieces in stock."""
        return _PRODUCTS[product]["stock"]

    def on_product(self, product: str) -> dict[str, Any]:
        """Everything about a product."""
        return {"name": product, **_PRODUCTS[product]}

    def on_products(self, category: str) -> list[str]:
        """Names of a category's products."""
        return [name for name, one in _PRODUCTS.items() if one["category"] == category]

    def on_weather(self, city: str, day: int = 0) -> dict[str, Any]:
        """Forecast for a city; day 0 is today, 3 the last."""
        if not 0 <= day < 4:
            raise ValueError(f"no forecast for day {day}")
        return dict(zip(("temp_c", "wind_kmh", "rain_mm", "sky"), _WEATHER[city][day], strict=True))

    def on_user(self, user_id: int) -> dict[str, Any]:
        """User with that id."""
        found = [user for user in _USERS if user["id"] == user_id]
        if not found:
            raise LookupError(f"no user {user_id}")
        return dict(found[0])

    def on_users(self, page: int = 1, size: int = 3) -> dict[str, Any]:
        """Page of users, from 1; `next` is the next page, or None."""
        chosen = _USERS[(page - 1) * size : page * size]
        return {"items": chosen, "next": page + 1 if page * size < len(_USERS) else None}

    def on_orders(self, user_id: int, offset: int = 0, limit: int = 2) -> list[dict[str, Any]]:
        """Some of a user's orders, oldest first."""
        rows = _ORDERS.get(user_id, [])[offset : offset + limit]
        return [dict(zip(("product", "quantity", "state"), row, strict=True)) for row in rows]

    def on_ledger(self, account: str) -> list[dict[str, Any]]:
        """Entries of an account, oldest first."""
        return [dict(zip(("date", "kind", "amount"), row, strict=True)) for row in _LEDGER[account]]

    def on_rate(self, source: str, target: str) -> float:
        """Exchange rate."""
        return round(_RATES[source] / _RATES[target], 6)

    def on_get(self, url: str) -> dict[str, Any]:
        """Fetch a page: its status, and its body as text."""
        if url not in _PAGES:
            raise ConnectionError(f"cannot reach {url}")
        status, body = _PAGES[url]
        return {"status": status, "body": body if isinstance(body, str) else json.dumps(body)}

    def on_job(self, name: str) -> str:
        """State of a job; it goes on with each call."""
        states = _JOBS[name]
        self._asked[f"job {name}"] += 1
        return states[min(self._asked[f"job {name}"], len(states)) - 1]

    def on_take(self, queue: str) -> Any:
        """Next message of a queue, or None at its end."""
        self._asked[queue] += 1
        waiting = _QUEUES[queue]
        return waiting[self._asked[queue] - 1] if self._asked[queue] <= len(waiting) else None

    def on_ticket(self) -> int:
        """Next free number."""
        self._asked["ticket"] += 1
        return 100 + self._asked["ticket"]

    def on_sales(self, year: int) -> Any:
        """Sales of a year as a frame."""
        import pandas as pd

        rows = {
            2023: [
                ("Bern", "tea", 5, 20.0), ("Bern", "mug", 2, 22.0), ("Chur", "tea", 9, 36.0),
                ("Lugano", "lamp", 1, 35.0),
            ],
            2024: [
                ("Chur", "mug", 3, 33.0), ("Bern", "tea", 7, 28.0), ("Chur", "tea", 1, 4.0), ("Bern", "lamp", 2, 70.0),
                ("Geneva", "mug", 6, 66.0),
            ],
        }.get(year, [])  # fmt: skip
        return pd.DataFrame(rows, columns=["city", "product", "units", "amount"])

    def on_send(self, to: str, text: str) -> dict[str, Any]:
        """Send a message."""
        self.effects.append(("send", to, text))
        return {"sent": bool(to), "length": len(text)}

    def on_pay(self, account: str, amount: float) -> dict[str, Any]:
        """Pay from an account."""
        if amount <= 0:
            raise ValueError(f"cannot pay {amount}")
        self.effects.append(("pay", account, amount))
        return {"account": account, "amount": amount, "receipt": f"R{len(self.effects)}"}

    def on_delete(self, key: str) -> bool:
        """Delete something; True if it was there."""
        self.effects.append(("delete", key))
        return key.startswith("tmp") or key in _PRODUCTS


__all__ = ["FILES", "TOOLS", "World"]

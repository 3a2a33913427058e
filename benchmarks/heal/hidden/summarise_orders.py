"""A summary for the weekly meeting."""

from collections import defaultdict


def line_total(line):
    """Price of one line; a line with no quantity is one piece."""
    return line["price"] * line.get("quantity", 1)


def order_total(order):
    return sum(line_total(line) for line in order["lines"])


def dearest_item(orders):
    best_name, best_price = None, 0
    for order in orders:
        for line in order["lines"]:
            if line["price"] > best_price:
                best_name = line["name"]
                best_price = line["price"]
    return best_name


def by_customer(orders):
    grouped = defaultdict(list)
    for order in orders:
        grouped[order["customer"]].append(order)
    return grouped


def rank(rows):
    ordered = sorted(rows, key=lambda row: (-row["total"], row["customer"]))
    for place, row in enumerate(ordered, start=1):
        row["rank"] = place
    return ordered


def summarise_orders(orders):
    grouped = by_customer(orders)
    rows = []
    for customer, theirs in grouped.items():
        rows.append(
            {
                "customer": customer,
                "orders": len(theirs),
                "total": sum(order_total(order) for order in theirs),
                "dearest": dearest_item(theirs),
            }
        )
    return rank(rows)

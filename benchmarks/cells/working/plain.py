# === inventory: plain
# %%
inventory = {"apples": 30, "pears": 12, "plums": 0}
prices = {"apples": 0.4, "pears": 0.65, "plums": 0.2}
# %%
def stock_value(stock, price_list):
    total = 0
    for name, count in stock.items():
        total += count * price_list[name]
    return total
# %%
value = stock_value(inventory, prices)
print("Value: " + str(round(value, 2)))
# %%
available = [name for name in sorted(inventory) if inventory[name] > 0]
", ".join(available)
# === matrix: plain
# %%
grid = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
size = len(grid)
# %%
diagonal = [grid[i][i] for i in range(size)]
columns = [sum(row[j] for row in grid) for j in range(size)]
# %%
transposed = list(map(list, zip(*grid)))
(sum(diagonal), max(columns), transposed[size - 1][0])
# === accounts: plain
# %%
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))
        return self.balance

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
        self.history.append(("withdraw", amount))
        return self.balance
# %%
account = Account("Ann", balance=50)
account.deposit(25)
left = account.withdraw(40)
# %%
kinds = [kind for kind, amount in account.history]
print(account.owner, left, kinds)
# === words: plain
# %%
text = "the quick brown fox jumps over the lazy dog the end"
words = text.split(" ")
# %%
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
# %%
ranked = sorted(counts.items(), key=lambda pair: pair[1], reverse=True)
top = ranked[0][0]
print(top.upper(), counts[top])
# === config: plain
# %% config.json
"""
{"server": {"host": "localhost", "port": 8080}, "users": ["ann", "bob"], "debug": false}
"""
# %%
import json
from pathlib import Path

config = json.loads(Path("config.json").read_text())
# %%
host = config["server"]["host"]
address = host + ":" + str(config["server"]["port"])
# %%
first_user = config["users"][0].title()
print(address, first_user, config["debug"])
# === csv_rows: plain
# %% cities.csv
"""
city,country,people
Oslo,Norway,709000
Lyon,France,522000
Porto,Portugal,231000
"""
# %%
import csv

with open("cities.csv", newline="") as file:
    rows = list(csv.DictReader(file))
# %%
people = {row["city"]: int(row["people"]) for row in rows}
largest = max(people, key=people.get)
# %%
average = sum(people.values()) / len(people)
print(largest, round(average))
# === dates: plain
# %%
from datetime import datetime, timedelta

start = datetime(2025, 3, 28)
holidays = ["2025-04-18", "2025-04-21"]
# %%
days = [start + timedelta(days=7 * week) for week in range(4)]
free = [datetime.strptime(text, "%Y-%m-%d") for text in holidays]
# %%
working = [day.strftime("%d.%m.") for day in days if day not in free]
working
# === logs: plain
# %% server.log
"""
2025-01-03 10:00:01 INFO start
2025-01-03 10:00:07 ERROR disk full
2025-01-03 10:01:22 INFO retry
2025-01-03 10:02:40 ERROR network down
"""
# %%
import re

pattern = re.compile(r"^(\S+) (\S+) (\w+) (.*)$")
with open("server.log") as log_file:
    lines = log_file.read().splitlines()
# %%
entries = []
for line in lines:
    match = pattern.match(line)
    if match:
        entries.append({"time": match.group(2), "level": match.group(3), "message": match.group(4)})
# %%
errors = [entry["message"] for entry in entries if entry["level"] == "ERROR"]
print(len(errors), errors[-1])
# === shapes: plain
# %%
import math

class Shape:
    def area(self):
        raise NotImplementedError

class Circle(Shape):
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius ** 2

class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2
# %%
shapes = [Circle(1), Square(2), Circle(0.5)]
areas = [round(shape.area(), 2) for shape in shapes]
# %%
biggest = max(shapes, key=lambda shape: shape.area())
type(biggest).__name__, areas
# === fetching: plain
# %%
import asyncio

async def fetch(name, delay):
    await asyncio.sleep(delay)
    return {"name": name, "size": len(name) * 10}
# %%
page = await fetch("index", 0.001)
pages = await asyncio.gather(fetch("about", 0.001), fetch("contact", 0.001))
# %%
sizes = [one["size"] for one in pages] + [page["size"]]
sum(sizes)
# === primes: plain
# %%
def is_prime(number):
    if number < 2:
        return False
    for divisor in range(2, int(number ** 0.5) + 1):
        if number % divisor == 0:
            return False
    return True
# %%
primes = [n for n in range(30) if is_prime(n)]
gaps = [primes[i + 1] - primes[i] for i in range(len(primes) - 1)]
# %%
longest = max(gaps)
position = gaps.index(longest)
print(primes[position], primes[position + 1], longest)
# === scores: plain
# %%
from collections import defaultdict

results = [("ann", 12), ("bob", 7), ("ann", 9), ("cid", 15), ("bob", 11)]
# %%
by_name = defaultdict(list)
for name, points in results:
    by_name[name].append(points)
# %%
averages = {name: sum(points) / len(points) for name, points in by_name.items()}
best = max(averages, key=averages.get)
# %%
print(f"{best} with {averages[best]:.1f} points")

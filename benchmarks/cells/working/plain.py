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
# === library: plain
# %%
from dataclasses import dataclass, field

@dataclass
class Book:
    title: str
    pages: int
    tags: list = field(default_factory=list)

@dataclass
class Library:
    books: list

    def find(self, tag):
        return [book for book in self.books if tag in book.tags]

    def longest(self):
        return max(self.books, key=lambda book: book.pages)
# %%
library = Library([Book("Emma", 474, ["novel"]), Book("Atlas", 120, ["maps", "travel"]), Book("Dune", 612, ["novel"])])
novels = library.find("novel")
# %%
titles = [book.title for book in novels]
numbers = [book.pages for book in novels]
print(" | ".join(titles), ",".join(map(str, numbers)), library.longest().title)
# === fibonacci: plain
# %%
from functools import lru_cache, reduce

@lru_cache(maxsize=None)
def fibonacci(number):
    if number <= 1:
        return number
    return fibonacci(number - 1) + fibonacci(number - 2)
# %%
first = [fibonacci(n) for n in range(12)]
even = list(filter(lambda value: value % 2 == 0, first))
# %%
product = reduce(lambda left, right: left * right, even[1:])
first[len(first) - 1], product
# === stack: plain
# %%
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            return None
        return self.items.pop()

    def __len__(self):
        return len(self.items)
# %%
pairs = {")": "(", "]": "["}

def balanced(text):
    stack = Stack()
    for letter in text:
        if letter in "([":
            stack.push(letter)
        elif letter in pairs:
            if stack.pop() != pairs[letter]:
                return False
    return len(stack) == 0
# %%
checks = {text: balanced(text) for text in ("(a[b])", "(a", "[)")}
print(checks)
# === recipe: plain
# %%
recipe = {"name": "soup", "servings": 4, "ingredients": {"water": "1000", "salt": "8", "carrots": "300"}}
wanted = 6
# %%
amounts = {}
for name, amount in recipe["ingredients"].items():
    amounts[name] = float(amount) * wanted / recipe["servings"]
# %%
lines = [name + ": " + str(amount) for name, amount in amounts.items()]
if "salt" in amounts:
    lines.append("total: " + str(sum(amounts.values())))
"; ".join(lines)
# === temperatures_file: plain
# %% readings.txt
"""
Oslo 3.5
Lyon 11.0
Porto 15.25
Oslo 4.5
"""
# %%
towns, values = [], []
with open("readings.txt") as handle:
    for line in handle:
        town, value = line.split()
        towns.append(town)
        values.append(float(value))
# %%
def mean_of(town):
    chosen = [value for name, value in zip(towns, values) if name == town]
    return sum(chosen) / len(chosen)
# %%
means = {town: mean_of(town) for town in set(towns)}
warmest = max(means, key=means.get)
print(warmest, round(means[warmest], 1))
# === schedule: plain
# %%
from datetime import date, datetime, timedelta

meetings = [("review", "2025-06-03 10:00"), ("planning", "2025-06-02 09:30"), ("retro", "2025-06-03 15:15")]
# %%
parsed = [(name, datetime.strptime(text, "%Y-%m-%d %H:%M")) for name, text in meetings]
parsed = sorted(parsed, key=lambda pair: pair[1])
# %%
start = date(2025, 6, 2)
first_name, first_time = parsed[0]
gap = parsed[-1][1] - parsed[0][1]
ends = [(when + timedelta(minutes=45)).strftime("%H:%M") for name, when in parsed]
print(first_name, (first_time.date() - start).days, gap.days, ends)
# === tree: plain
# %%
class Node:
    def __init__(self, value, left=None, right=None):
        self.value = value
        self.left = left
        self.right = right

    def insert(self, value):
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Node(value))
        else:
            child.insert(value)

    def walk(self):
        if self.left is not None:
            yield from self.left.walk()
        yield self.value
        if self.right is not None:
            yield from self.right.walk()
# %%
root = Node(8)
for number in [3, 10, 1, 6, 14]:
    root.insert(number)
# %%
ordered = list(root.walk())
depth_one = (root.left.value, root.right.value)
ordered[1], depth_one, sum(ordered)
# === orders_json: plain
# %% orders.json
"""
[{"id": 1, "lines": [{"sku": "a", "qty": 2, "price": 3.5}]}, {"id": 2, "lines": [{"sku": "b", "qty": 1, "price": 9.0}, {"sku": "a", "qty": 4, "price": 3.5}]}]
"""
# %%
import json
from collections import Counter

with open("orders.json", encoding="utf-8") as file:
    orders = json.load(file)
# %%
totals = {order["id"]: sum(line["qty"] * line["price"] for line in order["lines"]) for order in orders}
sold = Counter()
for order in orders:
    for line in order["lines"]:
        sold[line["sku"]] += line["qty"]
# %%
name, count = sold.most_common(1)[0]
print(name, count, totals[2], max(totals.values()))
# === cipher: plain
# %%
import string

alphabet = string.ascii_lowercase
shift = 3
# %%
def encode(text, shift):
    coded = ""
    for letter in text.lower():
        if letter in alphabet:
            position = (alphabet.index(letter) + shift) % len(alphabet)
            coded += alphabet[position]
        else:
            coded += letter
    return coded
# %%
secret = encode("Hello World", shift)
plain = encode(secret, -shift)
secret, plain.title(), len(secret)
# === generator: plain
# %%
import itertools

def windows(items, size):
    for start in range(len(items) - size + 1):
        yield items[start:start + size]
# %%
prices = [10, 12, 9, 15, 14, 18]
averages = [sum(window) / len(window) for window in windows(prices, 3)]
# %%
steps = list(itertools.accumulate(averages))
walker = iter(steps)
first = next(walker)
rises = [b > a for a, b in zip(averages, averages[1:])]
first, steps[-1], all(rises)
# === game: plain
# %%
board = [["x", "o", "x"], ["o", "x", "o"], ["o", "", "x"]]
winners = []
# %%
def line_winner(cells):
    if len(set(cells)) == 1 and cells[0]:
        return cells[0]
    return None

lines = board + [list(column) for column in zip(*board)]
lines.append([board[i][i] for i in range(len(board))])
# %%
for line in lines:
    winner = line_winner(line)
    if winner is not None:
        winners.append(winner.upper())
empty = sum(row.count("") for row in board)
winners, empty
# === queue_async: plain
# %%
import asyncio

async def worker(queue, done):
    while not queue.empty():
        job = await queue.get()
        await asyncio.sleep(0)
        done.append(job * 2)
    return len(done)
# %%
queue = asyncio.Queue()
for job in [1, 2, 3]:
    await queue.put(job)
done = []
# %%
count = await worker(queue, done)
print(count + 1, sorted(done)[0])
# === parser: plain
# %%
import re

document = "Invoice 2025-017\nTotal: EUR 1,204.50\nDue: 2025-07-01\nCall +49 30 1234"
# %%
number = re.search(r"Invoice (\d{4}-\d{3})", document).group(1)
amount = re.findall(r"EUR ([\d,.]+)", document)[0]
fields = dict(re.findall(r"^(\w+): (.+)$", document, flags=re.MULTILINE))
# %%
value = float(amount.replace(",", ""))
year, serial = number.split("-")
print(int(year) + 1, int(serial), value, fields["Due"])
# === errors: plain
# %%
class ParseError(Exception):
    def __init__(self, line, reason):
        super().__init__(f"line {line}: {reason}")
        self.line = line

def parse(lines):
    good, bad = [], []
    for number, line in enumerate(lines, start=1):
        try:
            if "=" not in line:
                raise ParseError(number, "no sign")
            key, value = line.split("=")
            good.append((key.strip(), int(value)))
        except ParseError as error:
            bad.append(error.line)
    return good, bad
# %%
settings, bad_lines = parse(["width = 30", "height 20", "depth = 5"])
settings = dict(settings)
# %%
volume = settings["width"] * settings["depth"]
print("Volume " + str(volume), bad_lines[0])
# === queue_of_jobs: plain
# %%
jobs = ["build", "test", "deploy"]
done = []
durations = {"build": 12, "test": 30, "deploy": 5}
# %%
while len(jobs) > 1:
    job = jobs.pop(0)
    done.append(job)
last = jobs[0]
# %%
jobs.remove(last)
durations["rest"] = durations.pop(last)
# %%
numbers = list(durations.values())
print("/".join(done), " + ".join(map(str, numbers)), last)
# === lines: plain
# %%
record = "2025-06-01,Ada,17,yes"
fields = ["day", "name", "points", "member"]
# %%
record = record.split(",")
entry = dict(zip(fields, record))
# %%
entry["points"] = int(entry["points"]) + 3
member = entry.pop("member") == "yes"
# %%
summary = entry["name"] + " has " + str(entry["points"])
print(summary, member, sorted(entry))
# === zones: plain
# %%
from datetime import datetime, timedelta

now = datetime(2025, 9, 1, 12, 0)
deadlines = {"draft": datetime(2025, 9, 3, 18, 0), "final": datetime(2025, 9, 10, 9, 0)}
# %%
left = {name: deadline - now for name, deadline in deadlines.items()}
soon = [name for name, rest in left.items() if rest < timedelta(days=3)]
# %%
print(soon[0], left["final"].days, (now + timedelta(hours=36)).strftime("%d.%m. %H:%M"))
# === downloads: plain
# %%
import asyncio

async def download(url):
    await asyncio.sleep(0)
    if not url.startswith("https"):
        raise ValueError("not safe: " + url)
    return url.split("/")[-1]
# %%
name = await download("https://example.org/a.txt")
length = len(name)
# %%
second = await download("https://example.org/data/b.csv")
endings = [part.split(".")[1] for part in (name, second)]
length, ",".join(endings)

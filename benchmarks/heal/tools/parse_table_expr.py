import re


def cell_position(name):
    column = ord(name[0]) - ord("A")
    row = int(name[1:])
    return row, column


def cell(table, name):
    row, column = cell_position(name)
    return table[row][column]


def cells_between(table, first, last):
    top, left = cell_position(first)
    bottom, right = cell_position(last)
    values = []
    for row in range(top, bottom + 1):
        values.extend(table[row][left : right + 1])
    return values


FUNCTIONS = {"SUM": sum, "MIN": min, "MAX": max, "COUNT": len}
TOKEN = re.compile(r"\s*(?:([A-Z]+)\((\w+):(\w+)\)|([A-Z]\d+)|(\d+(?:\.\d+)?)|([-+*/()]))")


def tokens_of(table, formula):
    """Numbers and operators, with every reference looked up."""
    position = 0
    while position < len(formula):
        match = TOKEN.match(formula, position)
        if match is None:
            raise ValueError(f"cannot read {formula[position:]!r}")
        name, first, last, reference, number, operator = match.groups()
        if name:
            yield FUNCTIONS[name](cells_between(table, first, last))
        elif reference:
            yield cell(table, reference)
        elif number:
            yield float(number)
        else:
            yield operator
        position = match.end()


class Parser:
    def __init__(self, tokens):
        self.tokens = list(tokens)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def total(self):
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self):
        value = self.factor()
        while self.peek() in ("*", "/"):
            value = value * self.factor() if self.take() == "*" else value / self.factor()
        return value

    def factor(self):
        token = self.take()
        if token == "(":
            value = self.total()
            self.take()
            return value
        return token


def parse_table_expr(table, formula):
    return Parser(tokens_of(table, formula.lstrip("="))).total()

def evaluate(expr):
    if not isinstance(expr, list):
        return expr
    op, left, right = expr
    left, right = evaluate(left), evaluate(right)
    if op == "+":
        return left + right
    if op == "-":
        return right - left
    if op == "*":
        return left * right
    if op == "/":
        return left // right
    raise ValueError(f"unknown operator {op}")

from collections import deque


def hot_potato(names, steps):
    circle = deque(names)
    order = []
    while circle:
        for _ in range(steps - 1):
            circle.append(circle.pop(0))
        order.append(circle.pop(0))
    return order

from collections import deque


def hot_potato(names, steps):
    circle = deque(names)
    order = []
    while circle:
        for _ in range(steps - 1):
            circle.append(circle.popleft())
        order.append(circle.popleft())
    return order

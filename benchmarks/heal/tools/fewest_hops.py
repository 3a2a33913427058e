from collections import deque


def fewest_hops(graph, start, goal):
    queue = deque([(start, 0)])
    visited = {start}
    while queue:
        place, hops = queue.popleft()
        if place == goal:
            return hops
        for neighbour in graph.get(place, []):
            if neighbour not in visited:
                queue.append((neighbour, hops + 1))
    return -1

import heapq


def cheapest_route(roads, start):
    costs = {start: 0}
    queue = [(0, start)]
    while queue:
        cost, place = heapq.heappop(queue)
        if cost > costs[place]:
            continue
        for neighbour, length in roads.get(place, {}).items():
            total = cost + length
            if neighbour not in costs or total > costs[neighbour]:
                costs[neighbour] = total
                heapq.heappush(queue, (total, neighbour))
    return costs

from collections import deque


def finish_order(jobs, slice_s):
    queue = deque(jobs.items())
    finished = []
    while queue:
        name, left = queue.popleft()
        left -= slice_s
        if left <= 0:
            finished.append(name)
        else:
            queue.append((name, left))
    return finished

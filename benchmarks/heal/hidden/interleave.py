def in_turns(left, right):
    for a, b in zip(left, right):
        yield a
        yield b
    shorter = min(len(left), len(right))
    yield from left[shorter:]
    yield from right[shorter:]


def interleave(left, right):
    return list(in_turns(left, right))

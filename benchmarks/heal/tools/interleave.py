def in_turns(left, right):
    for a, b in zip(left, right):
        yield a
        yield b


def interleave(left, right):
    return list(in_turns(left, right))

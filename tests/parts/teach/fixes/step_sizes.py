def step_sizes(values: list[float]) -> list[float]:
    """Return the differences between neighbours, one fewer than there are values."""
    steps = []
    for i in range(len(values) - 1):
        steps.append(values[i + 1] - values[i])
    return steps

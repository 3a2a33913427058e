def adds_up(parts: list[float], total: float) -> bool:
    """Say whether the parts of a bill add up to its total."""
    running = 0.0
    for part in parts:
        running += part
    return abs(running - total) < 0.005

def histogram(values, buckets):
    low, high = min(values), max(values)
    counts = [0] * buckets
    width = (high - low) / buckets
    for value in values:
        index = min(int((value - low) / width), buckets - 1)
        counts[index] += 1
    return counts

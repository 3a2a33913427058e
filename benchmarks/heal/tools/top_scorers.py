def top_scorers(scores, n):
    ranked = sorted(scores.items(), key=lambda item: (item[1], item[0]))
    return [name for name, _ in ranked[:n]]

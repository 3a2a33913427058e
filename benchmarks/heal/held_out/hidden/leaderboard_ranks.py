def leaderboard_ranks(scores):
    ranks = {}
    rank = 0
    last = None
    for name, score in sorted(scores.items(), key=lambda item: item[1], reverse=True):
        if score != last:
            rank = len(ranks) + 1
        ranks[name] = rank
        last = score
    return ranks

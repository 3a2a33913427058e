def poker_hand(cards):
    ranks = [card[:-1] for card in cards]
    suits = [card[-1] for card in cards]
    counts = sorted((ranks.count(rank) for rank in set(ranks)))
    if counts[0] == 4:
        return "four of a kind"
    if counts == [3, 2]:
        return "full house"
    if len(suits) == 1:
        return "flush"
    if counts[0] == 3:
        return "three of a kind"
    if counts == [2, 2, 1]:
        return "two pairs"
    if counts[0] == 2:
        return "pair"
    return "high card"

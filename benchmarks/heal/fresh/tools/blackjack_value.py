def blackjack_value(cards):
    total = 0
    aces = 0
    for card in cards:
        if card == "A":
            aces += 1
            total += 11
        elif card in ("J", "Q", "K"):
            total += 10
        else:
            total += int(card)
    while total > 21 and aces > 0:
        total -= 10
    return total

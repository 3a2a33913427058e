COINS = [200, 100, 50, 20, 10, 5, 2, 1]


def vending_change(cents):
    given = []
    i = 0
    while cents > 0:
        coin = COINS[i]
        if coin <= cents:
            given.append(coin)
            cents - coin
        else:
            i += 1
    return given

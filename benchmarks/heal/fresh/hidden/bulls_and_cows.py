def bulls_and_cows(secret, guess):
    bulls = sum(1 for s, g in zip(secret, guess) if s == g)
    common = 0
    for digit in set(guess):
        common += min(secret.count(digit), guess.count(digit))
    return {"bulls": bulls, "cows": common - bulls}

def is_strike(rolls, i):
    return rolls[i] == 10


def is_spare(rolls, i):
    return rolls[i] + rolls[i + 1] == 10


def score_bowling(rolls):
    score = 0
    i = 0
    for frame in range(10):
        if is_strike(rolls, i):
            score += 10 + rolls[i + 1] + rolls[i + 2]
            i += 1
        elif is_spare(rolls, i):
            score += 10 + rolls[i + 2]
            i += 2
        else:
            score += rolls[i] + rolls[i + 1]
            i += 2
    return score

def dice_score(dice):
    score = 0
    for face in range(1, 7):
        count = dice.count(face)
        if count >= 3:
            score += 1000 if face == 1 else face * 100
            count -= 3
        if face == 1:
            score += count * 100
        elif face == 5:
            score += count * 50
    return score

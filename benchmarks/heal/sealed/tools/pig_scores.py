def pig_scores(events):
    scores = [0, 0]
    player = 0
    turn = 0
    for event in events:
        if event == "hold":
            scores[player] += turn
            player = 1 - player
        elif event == 1:
            turn = 0
        else:
            turn += event
    return scores

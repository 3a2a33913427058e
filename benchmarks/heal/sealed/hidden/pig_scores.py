def pig_scores(events):
    scores = [0, 0]
    player = 0
    turn = 0
    for event in events:
        if event == "hold":
            scores[player] += turn
            player = 1 - player
            turn = 0
        elif event == 1:
            turn = 0
            player = 1 - player
        else:
            turn += event
    return scores

def battleship(ships, shots):
    afloat = [[tuple(field) for field in ship] for ship in ships]
    tried = set()
    answers = []
    for shot in shots:
        column = ord(shot[0]) - ord("A")
        row = int(shot[1:]) - 1
        if (row, column) in tried:
            answers.append("again")
            continue
        tried.add((row, column))
        answer = "miss"
        for ship in afloat:
            if (row, column) in ship:
                ship.remove((row, column))
                answer = "hit" if ship else "sunk"
        answers.append(answer)
    return answers

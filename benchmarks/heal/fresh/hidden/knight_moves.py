JUMPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


def knight_moves(square):
    col = ord(square[0]) - ord("a")
    row = int(square[1]) - 1
    moves = []
    for across, up in JUMPS:
        c = col + across
        r = row + up
        if 0 <= c < 8 and 0 <= r < 8:
            moves.append(chr(ord("a") + c) + str(r + 1))
    return sorted(moves)

def board_winner(board):
    lines = [list(row) for row in board]
    lines += [[row[i] for row in board] for i in range(3)]
    lines.append([board[i][i] for i in range(3)])
    lines.append([board[i][3 - i] for i in range(3)])
    for line in lines:
        if line[0] != " " and line.count(line[0]) == 3:
            return line[0]
    if any(" " in row for row in board):
        return "open"
    return "draw"

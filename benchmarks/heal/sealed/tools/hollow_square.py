def hollow_square(size):
    lines = []
    for row in range(size):
        line = ""
        for column in range(size):
            if row == 0 or row == size:
                line = line + "*"
            elif column == 0 or column == size:
                line = line + "*"
            else:
                line = line + " "
        lines.append(line)
    return lines

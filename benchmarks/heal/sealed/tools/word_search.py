def word_search(grid, word):
    rows = len(grid)
    columns = len(grid[0])
    length = len(word)
    for row in range(rows):
        for column in range(columns):
            if grid[row][column : column + length] == word:
                return [row, column, "across"]
            if row + length < rows:
                letters = ""
                for step in range(length):
                    letters += grid[row][column + step]
                if letters == word:
                    return [row, column, "down"]
    return None

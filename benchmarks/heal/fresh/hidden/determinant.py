def determinant(matrix):
    if len(matrix) == 1:
        return matrix[0][0]
    total = 0
    for col, value in enumerate(matrix[0]):
        minor = [row[:col] + row[col + 1 :] for row in matrix[1:]]
        total += (-1) ** col * value * determinant(minor)
    return total

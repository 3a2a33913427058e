def multiply_matrices(a, b):
    rows, cols = len(a), len(b[0])
    product = [[0] * cols for _ in range(rows)]
    for i in range(rows):
        for j in range(cols):
            for k in range(len(a)):
                product[i][j] += a[i][k] * b[k][j]
    return product

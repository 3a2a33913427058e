def column_maxima(table):
    maxima = []
    maximum = 0
    number_of_columns = len(table[0])
    for column in range(number_of_columns):
        for row in range(len(table)):
            value = table[row][column]
            if value > maximum:
                maximum = value
        maxima.append(maximum)
    return maxima

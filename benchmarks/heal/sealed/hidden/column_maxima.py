def column_maxima(table):
    maxima = []
    number_of_columns = len(table[0])
    for column in range(number_of_columns):
        maximum = table[0][column]
        for row in range(len(table)):
            value = table[row][column]
            if value > maximum:
                maximum = value
        maxima.append(maximum)
    return maxima

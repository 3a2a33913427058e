def reading_span(readings):
    numbers = list(map(float, readings))
    lowest = min(numbers)
    highest = max(numbers)
    span = round(highest - lowest, 2)
    return {"lowest": lowest, "highest": highest, "span": span}

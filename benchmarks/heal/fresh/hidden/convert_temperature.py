def convert_temperature(value, source, target):
    if source == "F":
        celsius = (value - 32) * 5 / 9
    elif source == "K":
        celsius = value - 273.15
    else:
        celsius = value
    if target == "F":
        return round(celsius * 9 / 5 + 32, 2)
    if target == "K":
        return round(celsius + 273.15, 2)
    return round(celsius, 2)

"""Convert a temperature from Fahrenheit to Celsius, rounded to one decimal."""

fahrenheit = arguments["fahrenheit"]
result = round((fahrenheit - 32) * 5 / 9, 1)

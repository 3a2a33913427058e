import re

text = arguments["text"]

amounts = []
for number in re.findall(r"(\d+(?:\.\d+)?) EUR", text):
    amounts.append(float(number))

result = round(sum(amounts), 2)

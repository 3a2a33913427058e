text = arguments["text"]
column = arguments["column"]

lines = text.strip().split("\n")
header = lines[0].split(",")
position = header.index(column) + 1

total = 0
for line in lines[1:]:
    cells = line.split(",")
    if cells[position] != "":
        total += float(cells[position])

result = round(total, 2)

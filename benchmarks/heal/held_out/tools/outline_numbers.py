def outline_numbers(lines):
    counters = []
    numbered = []
    for line in lines:
        title = line.strip()
        level = (len(line) - len(line.lstrip())) // 2
        while len(counters) <= level:
            counters.append(0)
        counters[level] += 1
        number = ".".join(str(count) for count in counters[: level + 1])
        numbered.append(number + " " + title)
    return numbered

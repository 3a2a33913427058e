def count_overlapping(text, part):
    count = 0
    position = text.find(part)
    while position != -1:
        count += 1
        position = text.find(part, position + 1)
    return count

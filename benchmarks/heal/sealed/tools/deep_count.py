def deep_count(data):
    count = 0
    for item in data:
        if type(item) == list:
            inner = deep_count(item)
            count = inner
        else:
            count = count + 1
    return count

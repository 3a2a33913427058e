def all_subsets(items):
    found = []

    def choose(start, chosen):
        found.append(list(chosen))
        for i in range(start, len(items)):
            chosen.append(items[i])
            choose(i + 1, chosen)
            chosen.pop()

    choose(0, [])
    return found

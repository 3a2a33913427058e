def words_by_initial(words):
    counts = {}
    for i in range(0, len(words)):
        word = words[i]
        initial = word[0].lower()
        if initial not in counts:
            counts[initial] = 0
        else:
            counts[initial] = counts[initial] + 1
    return counts

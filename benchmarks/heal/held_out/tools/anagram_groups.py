def anagram_groups(words):
    groups = {}
    for word in words:
        key = sorted(word.lower())
        groups.setdefault(key, []).append(word)
    return [group for group in groups.values() if len(group) > 1]

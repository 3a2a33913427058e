def common_prefix(words):
    if not words:
        return ""
    prefix = ""
    for i in range(len(words[0])):
        for word in words:
            if word[i] != words[0][i]:
                return prefix
        prefix += words[0][i]
    return prefix

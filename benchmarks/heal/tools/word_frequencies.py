import re


def word_frequencies(text, n=3):
    words = re.findall(r"[a-z']+", text.lower())
    counts = Counter(words)
    return [[word, count] for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]]

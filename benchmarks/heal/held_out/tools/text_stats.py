def text_stats(text):
    words = [word.strip(".,;:!?") for word in text.split(" ")]
    longest = ""
    letters = 0
    for word in words:
        letters += len(word)
        if word > longest:
            longest = word
    mean = round(letters / len(words), 1) if words else 0
    return {"words": len(words), "longest": longest, "mean": mean}

def book_index(pages):
    index = {}
    for number, text in enumerate(pages, 1):
        for word in text.lower().split():
            word = word.strip(".,;:!?")
            found = index.get(word, [])
            if number not in found:
                found.append(number)
    return index

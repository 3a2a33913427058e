def names_in(words, found=[]):
    for word in words:
        name = word[1:].strip(".,:!?")
        if word.startswith("@") and name and name not in found:
            found.append(name)
    return found


def mentions(messages):
    return [names_in(message.split()) for message in messages]

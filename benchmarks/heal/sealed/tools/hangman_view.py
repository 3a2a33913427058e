def hangman_view(word, guesses):
    view = ""
    found = "no"
    for letter in word:
        for guess in guesses:
            if guess.lower() == letter.lower():
                found = "yes"
        if found == "yes":
            view = view + letter
        else:
            view = view + "_"
    return view

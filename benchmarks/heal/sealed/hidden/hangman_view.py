def hangman_view(word, guesses):
    view = ""
    for letter in word:
        found = "no"
        for guess in guesses:
            if guess.lower() == letter.lower():
                found = "yes"
        if found == "yes":
            view = view + letter
        else:
            view = view + "_"
    return view

KEYS = {"2": "abc", "3": "def", "4": "ghi", "5": "jkl", "6": "mno", "7": "pqrs", "8": "tuv", "9": "wxyz"}


def keypad_presses(word):
    pressed = ""
    last = ""
    for letter in word:
        for key, letters in KEYS.items():
            if letter in letters:
                if key == last:
                    pressed += " "
                pressed += key * (letters.index(letter))
                last = letter
    return pressed

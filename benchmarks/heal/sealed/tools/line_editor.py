class LineEditor:
    def __init__(self):
        self.text = ""
        self.cursor = 0

    def press(self, key):
        if key == "left":
            self.cursor = max(0, self.cursor - 1)
        elif key == "right":
            self.cursor = min(len(self.text), self.cursor + 1)
        elif key == "back":
            self.text = self.text[: self.cursor - 1] + self.text[self.cursor :]
            self.cursor -= 1
        else:
            self.text = self.text[: self.cursor] + key + self.text[self.cursor :]
            self.cursor += len(key)


def line_editor(keys):
    editor = LineEditor()
    for key in keys:
        editor.press(key)
    return editor.text

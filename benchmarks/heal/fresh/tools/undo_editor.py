def undo_editor(commands):
    text = ""
    done = []
    undone = []
    for command in commands:
        if command == "undo":
            undone.append(text)
            text = done.pop()
        elif command == "redo":
            done.append(text)
            text = undone.pop()
        else:
            done.append(text)
            undone.clear()
            text += command
    return text

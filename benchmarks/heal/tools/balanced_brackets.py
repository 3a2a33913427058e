PAIRS = {")": "(", "]": "[", "}": "{"}


def balanced_brackets(text):
    stack = []
    for ch in text:
        if ch in PAIRS.values():
            stack.append(ch)
        elif ch in PAIRS:
            if not stack or stack.pop() != PAIRS[ch]:
                return False
    return True

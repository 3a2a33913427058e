class StackTool(Tool):
    """A calculator with a stack."""

    def __init__(self):
        self.stack = []

    def push(self, value):
        self.stack.append(value)

    def pop(self):
        return self.stak.pop()

    def run(self, arguments):
        for command in arguments["commands"]:
            word, _, number = command.partition(" ")
            if word == "push":
                self.push(int(number))
            elif word == "pop":
                self.pop()
            elif word == "add":
                self.push(self.pop() + self.pop())
            elif word == "dup":
                self.push(self.stack[-1])
        return self.stack

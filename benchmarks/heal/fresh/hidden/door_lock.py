class DoorLockTool(Tool):
    def run(self, arguments):
        code = arguments["code"]
        wrong = 0
        answers = []
        for entry in arguments["entries"]:
            if wrong >= 3:
                answers.append("blocked")
            elif entry == code:
                wrong = 0
                answers.append("open")
            else:
                wrong += 1
                answers.append("wrong")
        return answers

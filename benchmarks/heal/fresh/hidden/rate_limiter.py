class RateLimiterTool(Tool):
    def run(self, arguments):
        limit = arguments["limit"]
        window = arguments["window"]
        recent = []
        answers = []
        for moment in arguments["requests"]:
            recent = [earlier for earlier in recent if moment - earlier < window]
            if len(recent) < limit:
                recent.append(moment)
                answers.append(True)
            else:
                answers.append(False)
        return answers

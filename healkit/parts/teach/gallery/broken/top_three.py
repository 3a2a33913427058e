from healkit import Tool


class TopThree(Tool):
    """Return the three highest scores, highest first."""

    def run(self, arguments):
        scores = arguments["scores"]
        ranked = scores.sort(reverse=True)
        return ranked[:3]

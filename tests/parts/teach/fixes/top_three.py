from healkit import Tool


class TopThree(Tool):
    """Return the three highest scores, highest first."""

    def run(self, arguments):
        scores = arguments["scores"]
        ranked = sorted(scores, reverse=True)
        return ranked[:3]

from healkit import Tool


class SeatHolder(Tool):
    """Return the name of the person who sits in a seat, or "free"."""

    def run(self, arguments):
        plan = arguments["plan"]
        seat = str(arguments["seat"])
        if seat in plan:
            return plan[seat]
        return "free"

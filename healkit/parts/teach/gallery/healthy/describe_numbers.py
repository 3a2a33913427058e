import statistics

from healkit import Tool


class DescribeNumbers(Tool):
    """Describe a list of numbers: count, smallest, largest, mean and median."""

    def run(self, arguments):
        numbers = arguments["numbers"]
        if not numbers:
            return {"count": 0}
        return {
            "count": len(numbers),
            "smallest": min(numbers),
            "largest": max(numbers),
            "mean": statistics.fmean(numbers),
            "median": statistics.median(numbers),
        }

import statistics

prices = arguments["prices"]

mean = statistics.mean(prices)
middle = statistics.median(prices)
if len(prices) > 1:
    spread = statistics.stdev(prices)
else:
    spread = 0

result = {
    "mean": round(mean, 2),
    "median": round(middle, 2),
    "spread": round(spread, 2),
}

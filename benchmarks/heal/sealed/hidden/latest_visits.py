from datetime import datetime


def as_date(text):
    return datetime.strptime(text, "%d.%m.%Y")


latest = {}
for customer, date in arguments["visits"]:
    if customer not in latest or as_date(date) > as_date(latest[customer]):
        latest[customer] = date

ranking = sorted(latest.items(), key=lambda pair: as_date(pair[1]), reverse=True)
result = [list(pair) for pair in ranking]

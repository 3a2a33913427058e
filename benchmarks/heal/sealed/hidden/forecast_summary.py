import json

data = json.loads(arguments["payload"])
city = data["city"]["name"]

temperatures = []
descriptions = set()
for entry in data["list"]:
    temperatures.append(entry["main"]["temp"])
    for weather in entry["weather"]:
        descriptions.add(weather["description"])

result = {
    "city": city,
    "low": min(temperatures),
    "high": max(temperatures),
    "weather": sorted(descriptions),
}

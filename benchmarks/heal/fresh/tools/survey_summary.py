counts = {}
for answer in arguments["answers"]:
    answer = answer.strip().lower()
    if not answer:
        continue
    counts[answer] = counts.get(answer, 0) + 1

total = len(arguments["answers"])
result = {answer: round(100 * count / total) for answer, count in sorted(counts.items())}

import re
from collections import Counter

counts = Counter()
for line in arguments["log"].splitlines():
    match = re.search(r"\bE(\d{3})\b", line)
    counts[match.group()] += 1

result = dict(counts)

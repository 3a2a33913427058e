ages = arguments["ages"]

groups = {"child": 0, "adult": 0, "senior": 0}
for age in ages:
    if age < 18:
        groups["child"] += 1
    elif age >= 65:
        groups["senior"] += 1
    else:
        groups["adult"] += 1

result = groups

def items_missing(shopping, basket):
    missing = []
    for wanted in shopping:
        for item in basket:
            if item != wanted:
                missing.append(wanted)
    return missing

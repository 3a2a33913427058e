def items_missing(shopping, basket):
    missing = []
    for wanted in shopping:
        found = False
        for item in basket:
            if item == wanted:
                found = True
        if found == False:
            missing.append(wanted)
    return missing

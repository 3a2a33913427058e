def atom_counts(formula):
    counts = {}
    i = 0
    while i < len(formula):
        element = formula[i]
        i += 1
        if i < len(formula) and formula[i].islower():
            element += formula[i]
            i += 1
        digits = ""
        while i < len(formula) and formula[i].isdigit():
            digits = formula[i]
            i += 1
        number = int(digits) if digits else 1
        counts[element] = number
    return counts

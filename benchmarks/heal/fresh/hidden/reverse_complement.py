def reverse_complement(dna):
    dna = dna.upper()
    dna = dna.replace("A", "t")
    dna = dna.replace("T", "a")
    dna = dna.replace("C", "g")
    dna = dna.replace("G", "c")
    return dna[::-1].upper()

def reverse_complement(dna):
    dna = dna.upper()
    dna = dna.replace("A", "T")
    dna = dna.replace("T", "A")
    dna = dna.replace("C", "G")
    dna = dna.replace("G", "C")
    return dna[::-1]

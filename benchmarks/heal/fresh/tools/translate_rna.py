CODONS = {
    "AUG": "Met", "UUU": "Phe", "UUC": "Phe", "UUA": "Leu", "UUG": "Leu", "UCU": "Ser", "UCC": "Ser",
    "UAU": "Tyr", "UAC": "Tyr", "UGU": "Cys", "UGC": "Cys", "UGG": "Trp",
    "UAA": "STOP", "UAG": "STOP", "UGA": "STOP",
}


def translate_rna(rna):
    protein = []
    for i in range(0, len(rna) - 2, 3):
        amino = CODONS[rna[i : i + 3]]
        if amino == "STOP":
            continue
        protein.append(amino)
    return protein

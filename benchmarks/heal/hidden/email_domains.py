def email_domains(addresses):
    counts = {}
    for address in addresses:
        domain = address.split("@")[-1].lower()
        counts[domain] = counts.get(domain, 0) + 1
    return counts

def parse_contacts(text):
    contacts = []
    current = {}
    for line in text.splitlines():
        if line.strip():
            field, value = line.split(":")
            current[field.strip()] = value.strip()
        elif current:
            contacts.append(current)
            current.clear()
    if current:
        contacts.append(current)
    return contacts

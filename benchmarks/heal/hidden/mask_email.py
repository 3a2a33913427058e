def mask_email(address):
    name, domain = address.split("@")
    hidden = name[0] + "*" * (len(name) - 1)
    return f"{hidden}@{domain}"

def mask_email(address):
    name, domain = address.split("@")
    hidden = name[0] + "*" * len(name)
    return f"{hidden}@{domain}"

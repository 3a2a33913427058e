def article_code(name, year):
    prefix = name[:3].upper()
    return prefix

def article_code(name, year):
    prefix = name[:3].upper()
    digit = sum(ord(ch) for ch in prefix) % 7
    return f"{prefix}-{year % 100:02d}{digit}"

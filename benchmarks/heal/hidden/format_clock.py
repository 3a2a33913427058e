def format_clock(seconds):
    hours = seconds // 3600
    minutes = seconds // 60 % 60
    rest = seconds % 60
    return f"{hours}:{minutes:02d}:{rest:02d}"

def format_clock(seconds):
    hours = seconds // 3600
    minutes = seconds // 60
    rest = seconds % 60
    return f"{hours}:{minutes}:{rest:02d}"

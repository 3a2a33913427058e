import re

LINE = re.compile(r"(\d\d:\d\d:\d\d) \[(\w+)\] (.*)")


def parse_log_line(line):
    match = LINE.match(line)
    time, level, message = match.groups()
    return {"time": time, "level": level.lower(), "message": message}

def username_problems(name):
    problems = []
    if len(name) < 3 or len(name) > 12:
        problems.append("length")
    if not name.isalnum():
        problems.append("characters")
    if name[:1].isdigit():
        problems.append("start")
    return problems

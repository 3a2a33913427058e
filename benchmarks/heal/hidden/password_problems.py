def password_problems(password):
    problems = []
    if len(password) < 8:
        problems.append("short")
    if not any(ch.isdigit() for ch in password):
        problems.append("digit")
    if not any(ch.isupper() for ch in password):
        problems.append("upper")
    return problems

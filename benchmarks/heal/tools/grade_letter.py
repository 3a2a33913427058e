def grade_letter(points):
    if points >= 70:
        return "C"
    elif points >= 80:
        return "B"
    elif points >= 90:
        return "A"
    else:
        return "F"

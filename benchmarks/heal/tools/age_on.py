from datetime import date


def age_on(born, day):
    born, day = date.fromisoformat(born), date.fromisoformat(day)
    age = day.year - born.year
    if (day.month, day.day) > (born.month, born.day):
        age -= 1
    return age

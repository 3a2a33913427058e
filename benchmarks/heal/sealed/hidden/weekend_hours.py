def weekend_hours(entries):
    hours = 0
    for entry in entries:
        day = entry[0]
        day = day.lower()
        worked = entry[1]
        if day == "saturday" or day == "sunday":
            hours = hours + worked
    return hours

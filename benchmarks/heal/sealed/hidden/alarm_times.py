def alarm_times(readings, limit):
    alarms = []
    streak = 0
    for minute, reading in enumerate(readings):
        if reading > limit:
            streak += 1
        else:
            streak = 0
        if streak == 3:
            alarms.append(minute)
            streak = 0
    return alarms

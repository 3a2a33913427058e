"""Hours from the punch clock.

Entries come as {"who": …, "day": …, "in": "08:30", "out": "17:00"}; a person may come and go more than
once a day. The law takes half an hour off a day of more than six hours, and three quarters off one of
more than nine.
"""


def minutes(clock):
    hours, mins = clock.split(":")
    return int(hours) * 60 + int(mins)


def span(entry):
    """Minutes between in and out, None where somebody forgot to punch."""
    if not entry.get("in") or not entry.get("out"):
        return None
    gap = minutes(entry["out"]) - minutes(entry["in"])
    return gap if gap >= 0 else None


def with_break(worked):
    if worked > 6 * 60:
        return worked - 30
    if worked > 9 * 60:
        return worked - 45
    return worked


def as_hours(total):
    return round(total / 60, 2)


class Person:
    def __init__(self, name):
        self.name = name
        self.days = {}
        self.mistakes = []

    def punch(self, day, worked):
        if worked is None:
            if day not in self.mistakes:
                self.mistakes.append(day)
            return
        self.days[day] = self.days.get(day, 0) + worked

    def summary(self):
        net = {day: with_break(worked) for day, worked in self.days.items()}
        overtime = sum(max(0, worked - 8 * 60) for worked in net.values())
        return {
            "hours": as_hours(sum(net.values())),
            "overtime": as_hours(overtime),
            "mistakes": self.mistakes,
        }


def timesheet(entries):
    people = {}
    for entry in entries:
        who = entry["who"]
        if who not in people:
            people[who] = Person(who)
        people[who].punch(entry["day"], span(entry))
    return {name: people[name].summary() for name in sorted(people)}

def overlaps(a_start, a_end, b_start, b_end):
    return a_start <= b_end and b_start <= a_end


def fits_schedule(booked, start, end):
    for meeting in booked:
        if overlaps(meeting["start"], meeting["end"], start, end):
            return False
    return True

def assign_lockers(bags, lockers):
    taken = set()
    assigned = {}
    for owner, size in bags:
        assigned[owner] = None
        for number, room in lockers:
            if number not in taken and room >= size:
                assigned[owner] = number
                taken.add(number)
    return assigned

def bookable_rooms(rooms, people, projector):
    fitting = []
    for room in sorted(rooms, key=lambda room: room["seats"]):
        if room["taken"]:
            continue
        if room["seats"] >= people and (room["projector"] or not projector):
            fitting.append(room["name"])
    return fitting

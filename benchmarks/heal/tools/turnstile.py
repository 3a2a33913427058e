MOVES = {
    ("locked", "coin"): "open",
    ("locked", "push"): "locked",
    ("open", "coin"): "open",
    ("open", "push"): "open",
}


def turnstile(events):
    state = "locked"
    passed = 0
    for event in events:
        if state == "open" and event == "push":
            passed += 1
        state = MOVES[state, event]
    return {"state": state, "passed": passed}

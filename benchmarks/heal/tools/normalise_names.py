names = arguments["names"]

clean = set()
for name in names:
    trimmed = " ".join(name.split())
    if trimmed:
        clean.add(trimmed.titel())

result = sorted(clean)

def report_names(files):
    names = []
    for file in files:
        if file.endswith(".csv"):
            names.append(file.rstrip(".csv"))
    names.sort()
    return names

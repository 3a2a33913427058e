def sort_versions(versions):
    return sorted(versions, key=lambda v: [int(part) for part in v.split(".")])

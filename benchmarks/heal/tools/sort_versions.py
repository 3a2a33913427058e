def sort_versions(versions):
    return sorted(versions, key=lambda v: v.split("."))

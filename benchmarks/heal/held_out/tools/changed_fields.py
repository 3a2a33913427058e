def changed_fields(old, new):
    changes = {"added": [], "removed": [], "changed": []}
    for field in sorted(set(old) | set(new)):
        if not old.get(field):
            changes["added"].append(field)
        elif field not in new:
            changes["removed"].append(field)
        elif old[field] != new[field]:
            changes["changed"].append(field)
    return changes

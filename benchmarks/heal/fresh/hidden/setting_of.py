import json


def setting_of(text, name, default=None):
    value = json.loads(text)
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value

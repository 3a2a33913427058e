import re


def fill_template(template: str, values: dict) -> str:
    def put(match):
        key = match.group(1).strip()
        return str(values.get(key, match.group(0)))

    return re.sub(r"\{\{(.*?)\}\}", put, template)

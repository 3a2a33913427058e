import re


def fill_template(template: str, values: dict) -> str:
    def put(match):
        key = match.group(1).strip()
        return str(values[key])

    return re.sub(r"\{\{(.*?)\}\}", put, template)

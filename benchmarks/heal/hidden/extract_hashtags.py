import re


def extract_hashtags(text):
    tags = []
    for tag in re.findall(r"#(\w+)", text):
        tag = tag.lower()
        if tag not in tags:
            tags.append(tag)
    return tags

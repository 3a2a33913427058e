def clean_tags(tags):
    tags = [tag.strip().lower() for tag in tags]
    for tag in tags[:]:
        if tag == "":
            tags.remove(tag)
    return tags

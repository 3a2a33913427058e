def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def html_list(items):
    rows = [f"<li>{escape(item)}</li>" for item in items]
    return "<ul>" + "".join(rows) + "</ul>"

import re


def escape(text):
    text = text.replace("&", "&amp;")
    text = text.replace("<", "&lt;")
    return text.replace(">", "&gt;")


def inline(text):
    """Bold and code within one line."""
    text = escape(text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    return text


def heading(line):
    """The heading's HTML, or None where the line is none."""
    match = re.match(r"(#{1,3}) +(.*)", line)
    if match is None:
        return None
    level = len(match.group(1))
    return f"<h{level}>{inline(match.group(2))}</h{level}>"


class Writer:
    """Collects blocks; a paragraph and a list are kept open until something else begins."""

    def __init__(self):
        self.blocks = []
        self.paragraph = []
        self.items = []

    def close(self):
        if self.paragraph:
            self.blocks.append("<p>" + " ".join(self.paragraph) + "</p>")
            self.paragraph = []
        if self.items:
            rows = "".join(f"<li>{item}</li>" for item in self.items)
            self.blocks.append(f"<ul>{rows}</ul>")
            self.items = []

    def add(self, line):
        title = heading(line)
        if not line.strip():
            self.close()
        elif title is not None:
            self.close()
            self.blocks.append(title)
        elif line.startswith("- "):
            if self.paragraph:
                self.close()
            self.items.append(inline(line[2:]))
        else:
            if self.items:
                self.close()
            self.paragraph.append(inline(line))


def markdown_to_html(text):
    writer = Writer()
    for line in text.splitlines():
        writer.add(line)
    writer.close()
    return "\n".join(writer.blocks)

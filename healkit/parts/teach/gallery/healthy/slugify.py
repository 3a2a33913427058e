"""Turn a title into the last part of a web address: lower case, words joined by dashes."""

import re

words = re.findall(r"[a-z0-9]+", arguments["title"].lower())
result = "-".join(words)

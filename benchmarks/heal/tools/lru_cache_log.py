class Cache:
    """Keeps the keys that were used last."""

    def __init__(self, size):
        self.size = size
        self.entries = {}

    def read(self, key):
        if key not in self.entries:
            return None
        value = self.entries[key]
        self.entries[key] = value
        return value

    def write(self, key, value):
        self.entries.pop(key, None)
        self.entries[key] = value
        if len(self.entries) > self.size:
            oldest = next(iter(self.entries))
            del self.entries[oldest]


class CacheTool(Tool):
    def run(self, arguments):
        cache = Cache(arguments["size"])
        misses = 0
        for step in arguments["steps"]:
            if step[0] == "w":
                cache.write(step[1], step[2])
            elif cache.read(step[1]) is None:
                misses += 1
        return {"keys": list(cache.entries), "misses": misses}

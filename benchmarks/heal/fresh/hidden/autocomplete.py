class Trie:
    def __init__(self):
        self.root = {}

    def insert(self, word):
        node = self.root
        for letter in word:
            node = node.setdefault(letter, {})
        node["end"] = True

    def words(self, node, prefix):
        found = [prefix] if "end" in node else []
        for letter in sorted(key for key in node if key != "end"):
            found += self.words(node[letter], prefix + letter)
        return found


class AutocompleteTool(Tool):
    def run(self, arguments):
        trie = Trie()
        for word in arguments["words"]:
            trie.insert(word)
        node = trie.root
        for letter in arguments["prefix"]:
            if letter not in node:
                return []
            node = node[letter]
        return trie.words(node, arguments["prefix"])

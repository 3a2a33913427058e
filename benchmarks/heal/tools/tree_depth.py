def tree_depth(node):
    return 1 + max(tree_depth(child) for child in node.get("children", []))

def comment_thread(comments, depth=0):
    lines = []
    for comment in comments:
        lines.append("  " * depth + "- " + comment["text"])
        depth += 1
        lines += comment_thread(comment.get("replies", []), depth)
    return lines

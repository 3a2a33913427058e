def reachable_pages(links, start):
    seen = []
    queue = [start]
    while queue:
        page = queue.pop(0)
        if page not in seen:
            seen.append(page)
            for link in links.get(page, []):
                queue.append(link)
    return sorted(seen)

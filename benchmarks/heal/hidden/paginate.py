import math


def paginate(items, page, per_page):
    pages = math.ceil(len(items) / per_page)
    start = (page - 1) * per_page
    return {"items": items[start:start + per_page], "page": page, "pages": pages}

def books_since(books, author, year):
    wanted = author.lower()
    found = []
    for book in books:
        if book["author"].lower() == wanted and book["year"] >= year:
            found.append((book["year"], book["title"]))
    found.sort()
    titles = []
    for _, title in found:
        titles.append(title)
    return titles

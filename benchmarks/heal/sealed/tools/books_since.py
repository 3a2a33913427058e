def books_since(books, author, year):
    wanted = author.lower()
    found = []
    for book in books:
        if book["author"] == wanted and book["year"] > year:
            found.append((book["title"], book["year"]))
    found.sort()
    titles = []
    for title, _ in found:
        titles.append(title)
    return titles

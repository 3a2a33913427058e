def spiral(rows):
    order = []
    top, bottom = 0, len(rows) - 1
    left, right = 0, len(rows[0]) - 1 if rows else 0
    while top <= bottom and left <= right:
        for c in range(left, right + 1):
            order.append(rows[top][c])
        top += 1
        for r in range(top, bottom + 1):
            order.append(rows[r][right])
        right -= 1
        if top <= bottom:
            for c in range(right, left - 1, -1):
                order.append(rows[bottom][c])
        bottom -= 1
        if left <= right:
            for r in range(bottom, top - 1, -1):
                order.append(rows[r][left])
            left += 1
    return order

def triangle_type(a, b, c):
    if a + b <= c or a + c <= b or b + c <= a:
        return "none"
    if a == b and b == c:
        return "equilateral"
    if a == b or b == c or a == c:
        return "isosceles"
    return "scalene"

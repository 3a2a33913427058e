def second_largest(numbers):
    largest = None
    second = None
    for number in numbers:
        if largest == None or number > largest:
            second = largest
            largest = number
        elif number < largest:
            if second == None or number > second:
                second = number
    return second

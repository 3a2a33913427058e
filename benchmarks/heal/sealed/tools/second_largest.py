def second_largest(numbers):
    largest = None
    second = None
    for number in numbers:
        if largest == None or number > largest:
            largest = number
            second = largest
        elif number < largest:
            if second == None or number > second:
                second = number
    return second

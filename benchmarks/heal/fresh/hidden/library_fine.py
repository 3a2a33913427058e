from datetime import date


def library_fine(due, returned, child=False):
    late = (date.fromisoformat(returned) - date.fromisoformat(due)).days
    if late <= 3:
        return 0
    fine = late * 20
    if child:
        fine //= 2
    return min(fine, 1000)

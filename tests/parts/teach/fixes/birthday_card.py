def birthday_card(name: str, age: int) -> str:
    """Write a birthday greeting with the person's new age."""
    return "Happy birthday, " + name + "! You are " + str(age) + " now."

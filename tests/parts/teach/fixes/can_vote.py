def can_vote(age: int) -> bool:
    """Say whether a person of this age may vote: from the 18th birthday on."""
    return age >= 18

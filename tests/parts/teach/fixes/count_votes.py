def count_votes(ballots: list[str]) -> dict:
    """Count how many votes each name got."""
    votes = {}
    for name in ballots:
        votes[name] = votes.get(name, 0) + 1
    return votes

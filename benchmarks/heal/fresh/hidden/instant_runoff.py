def instant_runoff(ballots):
    while True:
        counts = {name: 0 for ballot in ballots for name in ballot}
        for ballot in ballots:
            if ballot:
                counts[ballot[0]] += 1
        if not counts:
            return None
        leader = max(sorted(counts), key=counts.get)
        if counts[leader] * 2 > sum(counts.values()):
            return leader
        if len(set(counts.values())) == 1:
            return None
        loser = min(sorted(counts), key=counts.get)
        ballots = [[name for name in ballot if name != loser] for ballot in ballots]

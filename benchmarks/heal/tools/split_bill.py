def split_bill(total_cents, people):
    share = total_cents // people
    rest = total_cents - share
    shares = []
    for i in range(people):
        extra = 1 if i <= rest else 0
        shares.append(share + extra)
    return shares

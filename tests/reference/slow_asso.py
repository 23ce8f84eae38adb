"""Asso from its definition: candidates of single columns, the best one first, cell by cell."""


def candidates(table, weights, threshold):
    columns = range(len(table[0]))

    def weight(*wanted):
        return sum(w for line, w in zip(table, weights, strict=True) if all(line[j] for j in wanted))

    found = []
    for i in columns:
        members = frozenset(j for j in columns if weight(i) and weight(i, j) / weight(i) >= threshold)
        if members and members not in found:
            found.append(members)
    return found


def greedy_cover(table, weights, n_sources, threshold, cost_of_one, cost_of_zero):
    """The cost of the cells that are wrong after each source."""
    offered = candidates(table, weights, threshold)
    covered, costs = set(), []

    def gain(t, members):
        new = [j for j in members if (t, j) not in covered]
        return sum(cost_of_one if table[t][j] else -cost_of_zero for j in new)

    while len(costs) < n_sources and offered:
        totals = [sum(w * max(gain(t, members), 0) for t, w in enumerate(weights)) for members in offered]
        best = max(range(len(offered)), key=lambda c: (totals[c], -c))
        if totals[best] <= 0:
            break
        users = [t for t in range(len(table)) if gain(t, offered[best]) > 0]
        covered |= {(t, j) for t in users for j in offered[best]}
        cost = 0
        for t, line in enumerate(table):
            for j, cell in enumerate(line):
                if bool(cell) != ((t, j) in covered):
                    cost += weights[t] * (cost_of_one if cell else cost_of_zero)
        costs.append(cost)
    return costs

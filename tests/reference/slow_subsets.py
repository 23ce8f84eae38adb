"""Sums over subsets and supersets, as they are defined: 4^m steps for m sensors."""

Table = list[float]


def subset_sums(values: Table) -> Table:
    return [sum(v for t, v in enumerate(values) if t | s == s) for s in range(len(values))]


def superset_sums(values: Table) -> Table:
    return [sum(v for t, v in enumerate(values) if t & s == s) for s in range(len(values))]


def signed_subset_sums(values: Table) -> Table:
    """Moebius inversion: a subset that lacks an odd number of members counts negative."""
    return [
        sum((-1) ** (s ^ t).bit_count() * v for t, v in enumerate(values) if t | s == s) for s in range(len(values))
    ]


def signed_superset_sums(values: Table) -> Table:
    return [
        sum((-1) ** (s ^ t).bit_count() * v for t, v in enumerate(values) if t & s == s) for s in range(len(values))
    ]

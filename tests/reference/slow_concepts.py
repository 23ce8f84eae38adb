"""Formal concepts from their definition: sets of row and column numbers."""

from itertools import combinations


def shared_columns(table, rows):
    return frozenset(j for j in range(len(table[0])) if all(table[i][j] for i in rows))


def rows_having(table, columns):
    return frozenset(i for i in range(len(table)) if all(table[i][j] for j in columns))


def is_concept(table, rows, columns):
    return shared_columns(table, rows) == columns and rows_having(table, columns) == rows


def greedy_cover(table, wanted, weights):
    """GreConD: columns are added while the concept covers more weight of the wanted cells that are left."""
    left = {(i, j) for i, j in wanted if table[i][j]}
    found = []
    while left:
        columns, value = frozenset(), 0
        while True:
            options = []
            for j in range(len(table[0])):
                if j not in columns:
                    rows = rows_having(table, columns | {j})
                    closed = shared_columns(table, rows)
                    options.append((sum(weights[a] for a, b in left if a in rows and b in closed), -j, closed))
            best = max(options, default=(0, 0, None), key=lambda option: option[:2])
            if best[0] <= value:
                break
            value, _, columns = best
        rows = rows_having(table, columns)
        found.append((rows, columns))
        left -= {(i, j) for i in rows for j in columns}
    return found


def essential(table):
    n_rows, n_columns = len(table), len(table[0])
    row = [{j for j in range(n_columns) if table[i][j]} for i in range(n_rows)]
    column = [{i for i in range(n_rows) if table[i][j]} for j in range(n_columns)]
    return {
        (i, j)
        for i in range(n_rows)
        for j in row[i]
        if not any(other < row[i] and j in other for other in row)
        and not any(other < column[j] and i in other for other in column)
    }


def boolean_rank(table):
    """The fewest rectangles of ones that cover all ones, by trying."""
    ones = {(i, j) for i, line in enumerate(table) for j, cell in enumerate(line) if cell}
    n_columns = len(table[0])
    sets = [frozenset(c) for size in range(1, n_columns + 1) for c in combinations(range(n_columns), size)]
    rectangles = {frozenset((i, j) for i in rows_having(table, c) for j in c) for c in sets} - {frozenset()}
    for size in range(len(ones) + 1):
        for chosen in combinations(rectangles, size):
            if frozenset().union(*chosen) == ones:
                return size
    raise AssertionError("single rows cover everything")

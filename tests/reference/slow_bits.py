"""Bit sets written from the definition: a row of cells is one integer of any length."""


def packed(rows):
    """Every row as an integer; cell i is worth 2^i."""
    return [sum(2**i for i, cell in enumerate(row) if cell) for row in rows]


def joined(words):
    """The integers in rows of 64-bit words."""
    return [sum(int(word) * 2 ** (64 * k) for k, word in enumerate(row)) for row in words]


def chosen(rows, columns):
    return [[row[column] for column in columns] for row in rows]


def numbered(keys):
    """The number of each key in the order of first appearance."""
    order = []
    for key in keys:
        if key not in order:
            order.append(key)
    return [order.index(key) for key in keys], [keys.index(key) for key in order]


def histogram(words, weights, size):
    return [sum(weight for word, weight in zip(words, weights, strict=True) if word == cell) for cell in range(size)]

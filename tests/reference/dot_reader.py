"""As much of Graphviz's language as it takes to read an undirected graph back, by the rules of its manual."""

import re

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\w+|--|[\[\]{}=,;])', re.DOTALL)
ESCAPE = re.compile(r"\\(.)|&amp;", re.DOTALL)
SHOWN = {"n": "\n", "\\": "\\", '"': '"', None: "&"}


def read(text):
    """The nodes with their attributes, and the edges, of a graph whose every value is quoted."""
    head, *rest = statements(text)
    assert head[:3] == ["graph", '"bica"', "{"], "this is no undirected graph"
    assert rest[-1] == ["}"], "the graph is not closed"
    nodes, edges = {}, []
    for statement in rest[:-1]:
        if statement[1] == "--":
            edges.append((shown(statement[0]), shown(statement[2])))
        else:
            nodes[shown(statement[0])] = attributes(statement[1:])
    return nodes, edges


def statements(text):
    """Lists of tokens, as they are parted by semicolons."""
    found = [[]]
    place = 0
    while place < len(text.rstrip()):
        token = TOKEN.match(text, place)
        assert token, f"this is not DOT: {text[place : place + 40]!r}"
        place = token.end()
        if token[1] == ";":
            found.append([])
        else:
            found[-1].append(token[1])
    return found


def attributes(tokens):
    """The pairs of ``[key="value", ...]``."""
    assert (tokens[0], tokens[-1]) == ("[", "]")
    pairs = [tokens[i : i + 3] for i in range(1, len(tokens) - 1, 4)]
    assert tokens[4:-1:4] == [","] * (len(pairs) - 1)
    return {key: shown(value) for key, _, value in pairs}


def shown(quoted):
    """What Graphviz draws for a quoted label."""
    assert quoted[0] == quoted[-1] == '"', f"{quoted} is not quoted"
    return ESCAPE.sub(lambda escape: SHOWN[escape[1]], quoted[1:-1])

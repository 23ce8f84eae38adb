"""Random tables for the tests of this folder."""

from hypothesis import strategies as st


@st.composite
def tables(draw, widths=(1, 2, 3, 5, 64, 65, 130)):
    """Rows of 0, 1 and None, some of them equal."""
    width = draw(st.sampled_from(widths))
    bits = st.integers(0, 2**width - 1)
    pool = draw(st.lists(st.tuples(bits, st.one_of(st.just(0), bits)), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=8))
    return [[None if gaps >> i & 1 else ones >> i & 1 for i in range(width)] for ones, gaps in rows]

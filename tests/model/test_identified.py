"""What rows can tell about lossy edges: the matching rule against numerical rank, pairs against the table of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.model.identified import determined_by, identified, pair_of, shares_of
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from tests.reference import slow_identified
from tests.strategies import lossy_models


@st.composite
def supports(draw):
    n_sensors = draw(st.integers(2, 5))
    sets = st.sets(st.integers(0, n_sensors - 1), min_size=1, max_size=n_sensors).map(sorted)
    return n_sensors, draw(st.lists(sets, min_size=1, max_size=5))


@settings(max_examples=150)
@given(supports())
def test_the_matching_rule_is_the_rank_of_all_derivatives(problem):
    n_sensors, sources = problem
    found = identified(sources)
    slow, n_free = slow_identified.identified(sources, n_sensors, np.random.default_rng(0))
    assert found.n_free == n_free
    assert list(found.sources) == slow


@pytest.mark.parametrize(
    ("sources", "n_free"),
    [
        ([(0, 1)], 2),
        ([(0, 1, 2)], 0),
        ([(0, 1, 2), (1, 2, 3)], 1),
        ([(0, 1, 2), (0, 1)], 3),
        ([(0, 1, 2, 3), (0, 1)], 2),
        ([(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)], 6),
        ([(0, 1, 2), (2, 3, 4)], 0),
    ],
)
def test_known_cases(sources, n_free):
    assert identified(sources).n_free == n_free


def test_wide_sources_with_sensors_of_their_own_take_no_time():
    sources = [tuple(range(5 * j, 5 * j + 20)) for j in range(200)]
    assert all(identified(sources).sources)


@settings(max_examples=100)
@given(st.floats(0.05, 0.9), st.tuples(*[st.floats(0.05, 0.95)] * 2), st.tuples(*[st.floats(0.0, 0.4)] * 2), st.data())
def test_both_ends_of_a_pair_have_the_same_rows(p, reach, leak, data):
    found = pair_of(p, reach, leak)
    table = OrMixture([[1], [1]], [p], Noise(leak), np.array(reach)[:, None]).pattern_probability()
    assert found.least - 1e-12 <= p
    alone = [table[[1, 3]].sum(), table[[2, 3]].sum()]
    assert found.together == pytest.approx(table[3] - alone[0] * alone[1], abs=1e-12)
    sure = 1 - table[0] / ((1 - alone[0]) * (1 - alone[1]))  # kappa is log of quiet together over quiet apart
    least_leak = [1 - (1 - share) / (1 - found.least) for share in alone]
    assert sure == pytest.approx(-found.least / (1 - found.least), abs=1e-9)
    at_least = OrMixture([[1], [1]], [found.least], Noise(np.maximum(least_leak, 0.0)))
    np.testing.assert_allclose(at_least.pattern_probability(), table, atol=1e-9)
    if found.most < 1:
        most_reach = np.array(alone)[:, None] / found.most
        at_most = OrMixture([[1], [1]], [found.most], reach=np.minimum(most_reach, 1.0))
        np.testing.assert_allclose(at_most.pattern_probability(), table, atol=1e-9)
        assert p <= found.most + 1e-12


@given(lossy_models(min_sensors=1))
def test_shares_are_margins_of_the_model(model):
    table = model.pattern_probability()
    for sensor, shares in enumerate(shares_of(model.document())):
        on = table[np.arange(table.size) >> sensor & 1 == 1].sum()
        assert shares.on == pytest.approx(on, abs=1e-12)
        assert {j for j, _ in shares.by_source} == set(np.flatnonzero(model.mixing[sensor]).tolist())
        assert shares.by_itself <= 1 + 1e-9


def test_what_is_told_of_a_document():
    model = OrMixture(
        [[1, 0], [1, 1], [0, 1], [0, 1]], [0.2, 0.3], Noise(0.01), [[0.5, 0], [0.6, 0.7], [0, 0.8], [0, 0.9]]
    )
    told = determined_by(model.document())
    assert told.is_identified == (False, True)
    assert told.pairs[0].least < 0.2 < told.pairs[0].most
    assert told.pairs[1] is None
    assert determined_by(model.with_noise(Noise(0.01, 0.02)).document()).pairs == (None, None)

"""What a block sees of sources that reach beyond it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bica.estimate.blocks.learner import Estimate, Pool
from tests.reference import slow_mixture

columns = st.frozensets(st.integers(0, 5), min_size=1).map(lambda column: tuple(sorted(column)))
pools = st.dictionaries(columns, st.floats(0.01, 2).map(lambda rate: Estimate(rate, 0.0)), max_size=5).map(Pool)


@given(pools, st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=4))
def test_the_part_that_a_block_sees_has_the_distribution_of_its_sensors(pool, sensors):
    masks, rates = pool.restricted_to(np.array(sensors))
    assert masks.tolist() == sorted(set(masks.tolist()) - {0})
    seen = slow_mixture.pattern_probability(
        list(zip(masks.tolist(), (-np.expm1(-rates)).tolist(), strict=True)), len(sensors)
    )
    whole = [(sum(1 << i for i in column), float(-np.expm1(-e.rate))) for column, e in pool.sources.items()]
    marginal = [0.0] * 2 ** len(sensors)
    for row, chance in enumerate(slow_mixture.pattern_probability(whole, 6)):
        marginal[sum(1 << k for k, sensor in enumerate(sensors) if row >> sensor & 1)] += chance
    np.testing.assert_allclose(seen, marginal, atol=1e-12)


@given(pools, st.sets(st.integers(0, 6)))
def test_sources_that_touch_are_listed_once(pool, sensors):
    found = pool.touching(sensors)
    assert len(found) == len(set(found))
    assert set(found) == {column for column in pool.sources if set(column) & sensors}

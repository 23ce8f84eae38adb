import math
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.invert.groups import groups_of
from bica.invert.solvers import LatticeTable
from bica.model.or_mixture import OrMixture

columns = st.lists(st.integers(1, 15), min_size=1, max_size=6, unique=True)


@settings(max_examples=60)
@given(columns, st.data())
def test_the_table_holds_the_cheapest_way_to_switch_on_exactly_each_set(members, data):
    chance = st.sampled_from([0.1, 0.3, 0.5, 0.8])
    probability = data.draw(st.lists(chance, min_size=len(members), max_size=len(members)))
    mixing = [[member >> sensor & 1 for member in members] for sensor in range(4)]
    for group in groups_of(OrMixture(mixing, probability)):
        cost = LatticeTable.of(group).cost
        n_sensors = len(group.sensors)
        np.testing.assert_allclose(cost, slow_costs(group.mixing, group.source_cost, n_sensors), atol=1e-8)


def slow_costs(mixing, price, n_sensors):
    table = [math.inf] * 2**n_sensors
    for activity in product([0, 1], repeat=len(price)):
        reached = sum(
            1 << i for i in range(n_sensors) if any(g and y for g, y in zip(mixing[i], activity, strict=True))
        )
        table[reached] = min(table[reached], sum(c * y for c, y in zip(price, activity, strict=True)))
    return table

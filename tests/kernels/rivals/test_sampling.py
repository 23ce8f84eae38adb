import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.kernels.rivals.sampling import explained_wrongly, flip_activity, flip_mixing
from tests.reference import slow_sampling


def problem(seed, n_rows, n_sensors, n_sources):
    rng = np.random.default_rng(seed)
    activity = rng.integers(0, 2, (n_rows, n_sources), dtype=np.uint8)
    mixing = rng.integers(0, 2, (n_sources, n_sensors), dtype=np.uint8)
    says = rng.normal(size=(n_rows, n_sensors)) * (rng.random((n_rows, n_sensors)) < 0.8)
    return rng, says, activity, mixing, activity.astype(np.int32) @ mixing


sizes = st.tuples(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))


@given(sizes)
@settings(max_examples=60)
def test_a_sweep_judges_every_flip_by_the_joint_probability(size):
    rng, says, activity, mixing, cover = problem(*size)
    odds = rng.normal(size=2)
    for which, (kernel, bits) in enumerate([(flip_activity, activity), (flip_mixing, mixing)]):
        draws = rng.random(bits.shape)
        expected = slow_sampling.swept(says.tolist(), activity.tolist(), mixing.tolist(), odds, draws, which)
        kernel(says, activity if which else mixing, odds[which], draws, bits, cover)
        assert activity.tolist() == expected[0]
        assert mixing.tolist() == expected[1]
        assert (cover == activity.astype(np.int32) @ mixing).all()


@given(sizes)
@settings(max_examples=40)
def test_wrong_cells_are_those_that_show_the_opposite(size):
    rng, _, _, _, cover = problem(*size)
    cells = rng.integers(0, 3, cover.shape, dtype=np.uint8)  # 2 is missing
    assert explained_wrongly(cells, cover) == ((cells != 2) & (cells != (cover > 0))).sum()

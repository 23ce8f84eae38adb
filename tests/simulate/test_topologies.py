"""The four networks of the evaluation are what they are said to be."""

import networkx
import pytest

from bica.errors import SettingError
from bica.model.noise import Noise
from bica.simulate import EVALUATION, TOPOLOGIES, topology


@pytest.mark.parametrize(
    ("name", "n_sensors", "n_sources", "n_groups"),
    [("one", 10, 6, 1), ("two", 10, 7, 3), ("three", 8, 12, 1), ("four", 12, 16, 3)],
)
def test_shape_and_groups(name, n_sensors, n_sources, n_groups):
    model = topology(name)
    assert model.mixing.shape == (n_sensors, n_sources)  # so no two sources were merged
    assert networkx.number_connected_components(model.to_networkx()) == n_groups
    assert model.mixing.any(axis=1).all()
    assert ((model.probability > 0.05) & (model.probability < 0.3)).all()


def test_sensors_and_probabilities_are_read_as_written():
    model = topology("one")
    assert [sensor for source, sensor in model.edges() if source == 1] == ["x1", "x4", "x7", "x8"]
    assert model.probability.tolist() == [0.26, 0.18, 0.22, 0.18, 0.09, 0.18]


def test_the_evaluation_is_the_paper_s():
    assert TOPOLOGIES == ("one", "two", "three", "four")
    assert EVALUATION.n_samples == (50, 100, 200, 500, 1000)
    assert (EVALUATION.flip_rates, EVALUATION.n_runs) == ((0.0, 0.1), 50)


def test_noise_can_be_added():
    assert topology("two", Noise.flips(0.1)).noise == Noise.flips(0.1)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(SettingError, match="no topology 'five'; choose one of one, two, three, four"):
        topology("five")

"""Which found source is shown beside which true one."""

import pytest

from bica.errors import ModelError
from bica.metrics.matching import Pair, paired_sources
from bica.model.or_mixture import OrMixture

TRUTH = OrMixture([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], [0.1, 0.2, 0.3], sensors=list("abcd"))


def test_the_same_model_pairs_exactly():
    assert paired_sources(TRUTH, TRUTH) == [Pair(j, j, True) for j in range(3)]


def test_order_of_sources_and_sensors_does_not_matter():
    found = TRUTH.pick([2, 0, 1]).of_sensors([3, 1, 0, 2])
    assert paired_sources(found, TRUTH) == [Pair(0, 1, True), Pair(1, 2, True), Pair(2, 0, True)]


def test_a_near_miss_is_paired_but_not_exact():
    found = OrMixture([[1], [0], [0], [0]], [0.1], sensors=list("abcd"))
    assert paired_sources(found, TRUTH) == [Pair(0, 0, False), Pair(1, None, False), Pair(2, None, False)]


def test_a_wide_wrong_source_does_not_take_the_place_of_the_right_one():
    """The published matching gives the true source to the wide one, as leaving that over costs more."""
    truth = OrMixture([[1], [1], [0], [0]], [0.2], sensors=list("abcd"))
    found = OrMixture([[1, 1], [1, 1], [1, 0], [1, 0]], [0.1, 0.2], sensors=list("abcd"))
    assert paired_sources(found, truth) == [Pair(0, 1, True), Pair(None, 0, False)]


def test_of_several_wrong_sources_the_nearest_is_paired():
    truth = OrMixture([[1], [1], [0], [0]], [0.2], sensors=list("abcd"))
    found = OrMixture([[1, 1], [1, 0], [1, 0], [1, 0]], [0.1, 0.2], sensors=list("abcd"))
    assert paired_sources(found, truth) == [Pair(0, 1, False), Pair(None, 0, False)]


def test_sources_with_nothing_in_common_are_not_paired():
    truth = TRUTH.pick([0])
    found = OrMixture([[0], [0], [0], [1]], [0.1], sensors=list("abcd"))
    assert paired_sources(found, truth) == [Pair(0, None, False), Pair(None, 0, False)]


def test_models_of_different_sensors_are_refused():
    with pytest.raises(ModelError, match="'d'"):
        paired_sources(TRUTH.of_sensors([0, 1, 2]), TRUTH)

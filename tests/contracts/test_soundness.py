"""Whole fits on tiny random tables, by every method: numbers that can be, and answers that follow the table."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import BicaError
from bica.methods import METHODS, method_named, needs_n_sources
from bica.pipeline import learn

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
EVERY = pytest.mark.parametrize("name", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")
ROUNDING = 1e-6  # of log-likelihoods and probabilities


def tables(least_columns=1):
    return st.integers(least_columns, 4).flatmap(
        lambda width: st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width), min_size=1, max_size=12)
    )


def learned(name, rows, sensors=None, weights=None):
    """What the method makes of the table; None if it refuses the table in a sentence of ours."""
    method = method_named(name, n_sources=1) if needs_n_sources(name) else method_named(name)
    data = PatternCounts.of(np.array(rows), sensors=sensors, sample_weight=weights)
    try:
        return learn(data, method, np.random.default_rng(0))
    except BicaError:
        return None


def saturated(rows):
    """The largest log-likelihood that any model can have: that of the observed frequencies."""
    _, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    return float(counts @ np.log(counts / counts.sum()))


def sources(found, order=None):
    """The sources as sets of columns, numbered as before they were put in this order."""
    order = range(found.fit.model.n_sensors) if order is None else order
    return {frozenset(order[i] for i in np.flatnonzero(column)) for column in found.fit.model.mixing.T}


@EVERY
@FEW
@given(rows=tables())
def test_numbers_are_finite_probable_and_no_better_than_the_rows_themselves(name, rows):
    found = learned(name, rows)
    if found is None:
        return
    model, fit = found.fit.model, found.fit
    assert ((model.probability >= 0) & (model.probability <= 1)).all()
    assert all(((rate >= 0) & (rate <= 1)).all() for rate in model.noise.rates(model.n_sensors))
    assert model.probability.tolist() == sorted(model.probability, reverse=True)
    assert len({tuple(column) for column in model.mixing.T.tolist()}) == model.n_sources
    assert model.mixing.any(axis=0).all()
    if fit.log_likelihood is not None:
        assert fit.log_likelihood <= saturated(rows) + ROUNDING
    if fit.probability_error is not None:
        assert (np.isnan(fit.probability_error) | (fit.probability_error >= 0)).all()


@EVERY
@FEW
@given(rows=tables())
def test_nothing_fits_where_nothing_was_learned(name, rows):
    found = learned(name, rows)
    if found is not None and (found.fit.model.mixing.sum(axis=0) < 2).all():
        assert found.diagnosis.verdict != "fits"


@EVERY
@FEW
@given(rows=tables(), data=st.data())
def test_the_order_of_rows_and_their_weights_are_no_matter(name, rows, data):
    shuffled = data.draw(st.permutations(rows))
    first, second = learned(name, rows), learned(name, shuffled)
    twice = learned(name, rows + shuffled, weights=np.full(2 * len(rows), 0.5))
    assert (first is None) == (second is None) == (twice is None)
    if first is not None:
        assert first.fit.model == second.fit.model
        assert first.diagnosis.verdict == second.diagnosis.verdict
        assert twice.fit.model == first.fit.model


@EVERY
@FEW
@given(rows=tables())
def test_the_names_of_columns_are_no_matter(name, rows):
    names = [f"z{len(rows[0]) - i} \u00e9" for i in range(len(rows[0]))]  # in another order, too
    first, second = learned(name, rows), learned(name, rows, names)
    assert (first is None) == (second is None)
    if first is not None:
        assert second.fit.model.sensors == tuple(names)
        assert sources(first) == sources(second)
        assert first.fit.model.probability.tolist() == second.fit.model.probability.tolist()
        assert first.diagnosis.verdict == second.diagnosis.verdict


@pytest.mark.parametrize("name", ["likelihood", "findbica"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(rows=tables(2), data=st.data())
def test_the_order_and_the_names_of_columns_are_no_matter(name, rows, data):
    """Where two sets of sources explain so few rows equally well, either may be the answer: its value is the same."""
    order = data.draw(st.permutations(range(len(rows[0]))))
    names = [f"renamed {i}" for i in order]
    first, second = learned(name, rows), learned(name, np.array(rows)[:, order], names)
    assert second.fit.model.sensors == tuple(names)
    assert first.diagnosis.verdict == second.diagnosis.verdict
    if sources(first) == sources(second, order):
        assert np.abs(first.fit.model.probability - second.fit.model.probability).max(initial=0) <= ROUNDING
    elif name == "likelihood":
        assert abs(first.fit.diagnostics["score"] - second.fit.diagnostics["score"]) <= ROUNDING

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, LimitError, SettingError
from bica.kernels.rivals.factors import walsh_hadamard
from bica.model.noise import Noise
from bica.progress import listening
from bica.rivals.xor import XorICA, america, binary_entropy, deflation, inverse_modulo_2, parities
from tests.reference import slow_parity


def invertible(rng, size):
    while True:
        matrix = rng.random((size, size)) < 0.5
        if round(np.linalg.det(matrix.astype(float))) % 2:
            return matrix


def problem(seed, n_sources, n_samples, most=0.4):
    rng = np.random.default_rng(seed)
    mixing, probability = invertible(rng, n_sources), rng.uniform(0.05, most, n_sources)
    sources = rng.random((n_samples, n_sources)) < probability
    return mixing, probability, parities(sources, mixing)


def fit(rows, **settings):
    return XorICA(**settings).fit(PatternCounts.of(rows), np.random.default_rng(0))


def columns(mixing):
    return {tuple(column) for column in mixing.T.tolist()}


def n_exact(search, n_sources, n_samples, seeds):
    problems = [problem(seed, n_sources, n_samples) for seed in seeds]
    return sum(columns(fit(rows, search=search).model.mixing) == columns(mixing) for mixing, _, rows in problems)


@pytest.mark.filterwarnings("ignore::bica.errors.BicaWarning")  # where mexico is stuck
def test_eight_sources_are_found():
    assert n_exact("america", 8, 5000, range(20)) == 20
    assert n_exact("mexico", 8, 5000, range(20)) >= 18


def test_twelve_sources_are_found():
    assert n_exact("america", 12, 5000, range(15)) == 15


def test_probabilities_are_shares_of_the_rows_within_four_standard_errors():
    mixing, probability, rows = problem(0, 8, 5000)
    found = fit(rows).model
    by_column = dict(zip(map(tuple, mixing.T.tolist()), probability, strict=True))
    for column, p in zip(map(tuple, found.mixing.T.tolist()), found.probability, strict=True):
        assert abs(p - by_column[column]) < 4 * np.sqrt(by_column[column] / 5000)


@given(st.lists(st.integers(0, 30), min_size=8, max_size=8).filter(any))
@settings(max_examples=40)
def test_the_sum_of_entropies_is_the_least_of_all(counts):
    rows = np.repeat((np.arange(8)[:, None] >> np.arange(3)) & 1, counts, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicaWarning)  # so few rows may be even
        found = fit(rows)
    assert found.diagnostics["objective"][-1] == pytest.approx(slow_parity.least_entropy(counts, 3), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_on_the_true_distribution_deflation_finds_what_america_finds(seed):
    rng = np.random.default_rng(seed)
    mixing, probability = invertible(rng, 6), rng.uniform(0.05, 0.4, 6)
    states = (np.arange(64)[:, None] >> np.arange(6)) & 1 == 1
    shown = parities(states, mixing) @ (1 << np.arange(6))
    balance = np.zeros(64)
    balance[shown] = np.where(states, probability, 1 - probability).prod(axis=1)
    walsh_hadamard(balance)
    words = [set(method(binary_entropy(balance), 6).tolist()) for method in (america, deflation)]
    assert words[0] == words[1] == set((inverse_modulo_2(mixing) @ (1 << np.arange(6))).tolist())


def test_a_uniform_source_is_warned_of_and_the_others_are_found():
    rng = np.random.default_rng(1)
    mixing = invertible(rng, 6)
    sources = rng.random((5000, 6)) < [0.1, 0.2, 0.3, 0.15, 0.25, 0.5]
    with pytest.warns(BicaWarning, match="is on in half of all rows"):
        found = fit(parities(sources, mixing))
    unmixing = {tuple(row) for row in inverse_modulo_2(mixing)[:5].tolist()}
    got = {tuple(f"x{j}" in names for j in range(6)) for names in found.diagnostics["unmixing"]}
    assert unmixing <= got  # the rows of the unmixing, since the uniform source may be in any column


def test_the_entropies_of_mexico_fall_and_its_steps_are_reported():
    data = PatternCounts.of(problem(0, 8, 2000)[2])
    seen = []
    with listening(lambda what, done, total: seen.append((what, done))):
        found = XorICA(search="mexico").fit(data, np.random.default_rng(0))
    entropies = found.diagnostics["objective"]
    assert (np.diff(entropies) < 0).all()
    assert seen == [("steps of mexico", step) for step in range(1, len(entropies))]


def test_sensors_that_depend_on_others_are_told_and_make_no_source():
    _, _, rows = problem(2, 4, 3000, most=0.3)
    more = np.column_stack([rows, rows[:, 0] ^ rows[:, 1], np.zeros(len(rows), dtype=bool)])
    found = fit(more)
    assert found.model.n_sources == 4
    assert sorted(found.diagnostics["always_even"]) == [["x0", "x1", "x4"], ["x5"]]
    assert columns(found.model.mixing[:4]) == columns(fit(rows).model.mixing)


@given(st.integers(0, 10**6), st.integers(1, 7))
@settings(max_examples=40)
def test_the_inverse_is_one(seed, size):
    matrix = invertible(np.random.default_rng(seed), size)
    product = matrix.astype(int) @ inverse_modulo_2(matrix).astype(int) % 2
    assert (product == np.eye(size)).all()


def test_many_sensors_are_left_to_mexico():
    _, _, rows = problem(3, 24, 4000, most=0.1)
    with pytest.raises(LimitError, match="take search='mexico'"):
        fit(rows, search="america")
    assert fit(rows).diagnostics["objective"] == fit(rows, search="mexico").diagnostics["objective"]


@pytest.mark.parametrize("settings", [{"search": "magic"}, {"noise": "per-sensor"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(SettingError):
        XorICA(**settings)


def test_given_noise_stays():
    _, _, rows = problem(0, 4, 2000, most=0.3)
    assert fit(rows, noise=Noise.flips(0.1)).model.noise == Noise.flips(0.1)

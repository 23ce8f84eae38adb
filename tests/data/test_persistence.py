"""Whether consecutive rows are alike, and what a fit makes of it."""

import numpy as np
import pytest
from click.testing import CliRunner

from bica import BICA, Noise, PatternCounts
from bica.cli.app import app
from bica.data.rows import Order, Rows, persistence_of
from bica.errors import MisfitWarning
from bica.pipeline import observe
from bica.simulate import markov_activity, random_network, simulate

RNG = np.random.default_rng
NAMES = [f"s{i}" for i in range(8)]


def order_in(rows):
    given = Rows.of(rows)
    return persistence_of(given.words, given.observed, given.sensors)


def slots(seed: int = 100, n_samples: int = 5000):
    rng = RNG(seed)
    return simulate(random_network(8, 8, noise=Noise.flips(0.02), rng=rng), n_samples, rng, persistence=10.0)


def test_independent_rows_are_never_called_alike():
    # a sensor must be 8 standard errors from 0: over 200 tables of 8 sensors that happens by chance with odds of 1e-12
    for seed in range(200):
        assert order_in(RNG(seed).random((300, 8)) < RNG(seed + 1000).uniform(0.05, 0.6, 8)) is None


def test_a_chain_is_stretched_as_its_mean_varies():
    probability, stay = 0.3, 10.0
    found = order_in(markov_activity([probability], stay, 20_000, RNG(1)))
    decay = 1 - 1 / (stay * (1 - probability))
    assert found.correlation == pytest.approx(decay, abs=0.02)  # standard error 0.004 with some 650 runs
    assert found.stretch == pytest.approx((1 + decay) / (1 - decay), rel=0.2)  # an error of 0.01 in the decay is 8 %


def test_noise_lowers_the_correlation_but_not_the_memory():
    chain = markov_activity([0.3], 10.0, 20_000, RNG(1))
    noisy = chain ^ (RNG(2).random(chain.shape) < 0.1)
    clear, found = order_in(chain), order_in(noisy)
    assert found.correlation < clear.correlation - 0.1
    assert found.stretch > 1 + 2 * found.correlation / (1 - found.correlation)  # which takes noise for forgetting


def test_sorted_grouped_and_short_tables_have_no_order():
    rows = RNG(5).random((2000, 6)) < 0.3
    assert order_in(rows[np.lexsort(rows.T)]) is None  # equal rows together
    assert order_in(rows[np.argsort(rows[:, 0], kind="stable")]) is None  # one column sorted
    wide = rows[:, :1] ^ (RNG(7).random((2000, 16)) < 0.2)  # most rows are distinct
    assert order_in(wide[np.lexsort(wide.T)]) is None
    halves = [half[np.lexsort(half.T)] for half in (wide[:1000], wide[1000:])]
    assert order_in(np.vstack(halves)) is None  # two sorted files
    assert order_in(np.repeat(rows[:15], 6, axis=0)) is None  # 90 rows
    assert order_in(rows.repeat(RNG(6).integers(0, 4, 2000), axis=0)) is None  # rows entered up to three times
    assert observe(PatternCounts.of(rows)).order == Order()


def test_slots_are_noticed_where_noise_makes_most_rows_distinct():
    rng = RNG(5)
    rows = simulate(random_network(16, 10, noise=Noise.flips(0.1), rng=rng), 3000, rng, persistence=10.0).rows
    assert len(np.unique(rows, axis=0)) > 1500  # more than half of all
    assert order_in(rows).stretch > 5


def test_short_stays_are_noticed():
    rng = RNG(6)
    network = random_network(8, 6, noise=Noise.flips(0.02), rng=rng)
    assert 3 <= order_in(simulate(network, 10_000, rng, persistence=3.0).rows).stretch < 6


def test_missing_cells_tell_no_runs():
    rows = np.repeat(RNG(5).random((400, 6)) < 0.3, 6, axis=0).astype(float)
    assert order_in(rows) is not None
    rows[3, 1] = np.nan
    assert order_in(rows) is None


@pytest.mark.parametrize("seed", [100, 101])
def test_the_default_notices_persistent_rows_and_fits_them(seed):
    problem = slots(seed)
    with pytest.warns(MisfitWarning, match="temporal=True"):
        found = BICA(random_state=0).fit(problem.rows)
    assert set(map(bytes, found.components_)) == set(map(bytes, problem.model.mixing.T.copy()))
    assert found.diagnostics_["diagnosis"]["verdict"] == "fits"
    assert found.fit_.n_samples == len(problem.rows)
    counted = BICA(random_state=0, noise=problem.model.noise.false_alarm).fit(PatternCounts.of(problem.rows))
    assert "order" not in counted.diagnostics_
    stretch = found.diagnostics_["order"]["stretch"]
    independent = np.sqrt(found.probabilities_ * (1 - found.probabilities_) / len(problem.rows))
    assert (found.probability_errors_ > independent).all()  # the error of that many independent looks at the source
    assert stretch > 5


def test_weighted_rows_have_no_order():
    problem = slots()
    found = BICA(random_state=0).fit(problem.rows, sample_weight=np.ones(len(problem.rows)))
    assert "order" not in found.diagnostics_


def test_check_and_fit_name_the_next_step(tmp_path):
    table = tmp_path / "slots.csv"
    rows = slots(n_samples=2000).rows.astype(int)
    table.write_text(",".join(NAMES) + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    checked = CliRunner().invoke(app, ["check", str(table)])
    assert "rows that follow each other are alike" in " ".join(checked.output.split())
    assert "--temporal" in checked.output
    fitted = CliRunner().invoke(app, ["fit", str(table)])
    assert fitted.exit_code == 0
    assert "--temporal" in fitted.output
    assert "--temporal" not in CliRunner().invoke(app, ["fit", str(table), "--temporal"]).output

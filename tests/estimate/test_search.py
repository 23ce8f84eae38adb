"""The search over sets of sources: the best of all on tiny problems, real networks, what it must leave alone."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bica import Likelihood
from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning
from bica.estimate import search
from bica.estimate.lattice import Cells, NoiseShape, Surface
from bica.estimate.likelihood import lattice_task
from bica.estimate.rows import states
from bica.estimate.rows.states import RowSurface, StateCells, first_shape, row_task
from bica.estimate.score import Scale
from bica.estimate.search import BY_GAIN, BY_SLOPE, SearchTask, SourceSearch, Start, add_several, drop
from bica.estimate.settings import Settings, Varying, as_sets
from bica.kernels.rows.states import Limits
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

# Real networks of shared/data/topology_zoo: for every source the paths that cross it.
GARR200212 = [
    [7, 9],
    [4, 6],
    [3, 6, 8, 9],
    [2, 5, 7, 9],
    [1, 4, 7, 8],
    [1, 3],
    [0, 5],
    [0, 4, 5, 6],
    [0, 2],
    [0, 1, 2, 3],
]
KAREN = [[14], [6, 9, 11, 12, 16, 18], [6, 9, 11, 12, 14, 16, 18], [5, 10, 14, 17, 19, 20], [4, 9, 13, 16, 18, 20],
         [3, 8, 12, 15, 18, 19], [3, 6, 8, 9, 11, 15, 16, 19], [2, 7, 11, 15, 16, 17], [1, 9, 13, 16, 18],
         [1, 6, 11, 12, 13, 14], [1, 4, 20], [0, 6, 7, 8, 9, 10], [0, 2, 3, 10, 17, 19], [0, 2, 3, 10, 14, 17, 19],
         [0, 1, 2, 3, 4, 5]]  # fmt: skip


def network(sources, flip_rate, seed, probability=(0.01, 0.12)):
    """The network with probabilities drawn at random, and what to go on drawing with."""
    rng = np.random.default_rng(seed)
    mixing = np.zeros((1 + max(map(max, sources)), len(sources)), dtype=bool)
    for number, sensors in enumerate(sources):
        mixing[sensors, number] = True
    return OrMixture(mixing, rng.uniform(*probability, len(sources)), Noise.flips(flip_rate)), rng


def columns(model):
    return {tuple(np.flatnonzero(column).tolist()) for column in model.mixing.T}


def karen(flip_rate=0.02, seed=0, n_samples=5000):
    """No source is so rare that it would not pay."""
    truth, rng = network(KAREN, flip_rate, seed, probability=(0.04, 0.12))
    return truth, truth.sample(n_samples, rng)


def learned(rows, seed=0, **settings):
    return Likelihood(n_jobs=1, **settings).fit(PatternCounts.of(rows), np.random.default_rng(seed))


def on_lattice(data, shape):
    return Surface(Cells.of(data), shape)


def on_rows(data, shape):
    return RowSurface(StateCells.of(data), shape, Limits(0.0, 1.0, 1 << 10, 1 << 20))


class TestTinyProblems:
    """Three sensors have seven possible sources: all 128 structures are scored."""

    N_TABLES = 6

    def task(self, seed, surface_of, moves=BY_GAIN):
        rng = np.random.default_rng(seed)
        sources = [[i for i in range(3) if s >> i & 1] for s in rng.choice(np.arange(1, 8), 3, replace=False)]
        mixing = np.array([[i in s for s in sources] for i in range(3)])
        truth = OrMixture(mixing, rng.uniform(0.05, 0.3, 3), Noise.flips(rng.uniform(0, 0.1)))
        data = PatternCounts.of(truth.sample(600, rng))
        every = np.arange(1, 8)
        surface = surface_of(data, NoiseShape.shared_flips(3, 1e-6))
        return SearchTask(Scale(surface, 600), moves, every)

    def start(self, sources=()):
        n = len(sources)
        return Start(np.array(sources, np.int64), np.full(n, 0.1), np.ones(n, dtype=bool), np.array([0.1]))

    @pytest.mark.parametrize(
        ("surface_of", "moves"), [(on_lattice, BY_GAIN), (on_rows, BY_GAIN), (on_lattice, BY_SLOPE)]
    )
    def test_the_best_of_all_structures_is_found_in_five_of_six(self, surface_of, moves):
        reached = 0
        for seed in range(self.N_TABLES):
            task = self.task(seed, surface_of, moves)
            structures = [chosen for n in range(8) for chosen in combinations(range(1, 8), n)]
            best = max(SourceSearch(task, self.start(chosen)).best.score for chosen in structures)
            found = SourceSearch(task, self.start()).run().score
            reached += found > best - 0.05  # refits stop that close to the top
        assert reached >= 5

    def test_moves_are_a_list_to_choose_from(self):
        everything = self.start(range(1, 8))
        nothing_tried = SourceSearch(self.task(0, on_lattice, ()), everything)
        assert nothing_tried.run() is nothing_tried.best
        dropped = SourceSearch(self.task(0, on_lattice, (drop,)), everything).run()
        assert dropped.score > nothing_tried.best.score
        assert set(dropped.fit.point.sources.tolist()) < set(nothing_tried.best.fit.point.sources.tolist())
        grown = SourceSearch(self.task(0, on_lattice, (add_several,)), self.start()).run()
        assert grown.fit.point.sources.size > 0


def test_gain_finds_what_slope_does_not():
    """A source of four sensors that is not among the steepest of its size, in a real network of ten sensors."""
    truth, rng = network(GARR200212, 0.02, 1)
    data = PatternCounts.of(truth.sample(5000, rng))
    task = lattice_task(Varying.of(data, (), ()), Settings())
    by_gain = task.search()
    by_slope = SourceSearch(replace(by_gain.task, moves=BY_SLOPE), task.start())
    by_slope.run()
    by_gain.run()
    true = set(as_sets(GARR200212).tolist())
    assert len(true - set(by_slope.best.fit.point.sources.tolist())) == 1
    assert set(by_gain.best.fit.point.sources.tolist()) == true
    assert by_gain.best.score > by_slope.best.score + 10
    assert columns(learned(data).model) == columns(truth)


class TestManySensors:
    @pytest.mark.parametrize("flip_rate", [0.0, 0.02, 0.05])
    def test_a_real_network_is_found_with_its_numbers(self, flip_rate):
        truth, rows = karen(flip_rate)
        fit = learned(rows)
        assert columns(fit.model) == columns(truth)
        assert fit.converged
        noise = fit.diagnostics["noise"]
        assert noise["interval"][0] <= flip_rate <= noise["interval"][1]
        by_column = dict(zip(map(tuple, fit.model.mixing.T), fit.model.probability, strict=True))
        errors = dict(zip(map(tuple, fit.model.mixing.T), fit.probability_error, strict=True))
        pulls = [
            (by_column[tuple(c)] - p) / errors[tuple(c)] for c, p in zip(truth.mixing.T, truth.probability, strict=True)
        ]
        assert np.abs(pulls).max() < 4
        assert 0.5 < np.std(pulls) < 1.7

    def test_missing_cells(self):
        truth, rows = karen()
        gaps = np.random.default_rng(1).random(rows.shape) < 0.05
        assert columns(learned(np.where(gaps, np.nan, rows)).model) == columns(truth)

    def test_known_noise_of_every_sensor(self):
        rng = np.random.default_rng(2)
        noise = Noise(rng.uniform(0, 0.03, 21), rng.uniform(0, 0.15, 21))
        truth, _ = karen()
        truth = OrMixture(truth.mixing, truth.probability, noise)
        fit = learned(truth.sample(4000, rng), noise=noise)
        assert columns(fit.model) == columns(truth)
        assert fit.model.noise == noise
        assert fit.diagnostics["noise"] == {"estimated": False}

    def test_known_sources_stay_and_forbidden_ones_never_come(self):
        _, rows = karen()
        names = [f"x{i}" for i in range(21)]
        known = [(["x0", "x20"], 0.2), [["x6", "x9", "x11", "x12", "x16", "x18"]]]
        data = PatternCounts.of(rows, sensors=names)
        fit = Likelihood(n_jobs=1, known=known, forbidden=[("x1", "x4")]).fit(data, np.random.default_rng(0))
        found = columns(fit.model)
        assert {(0, 20), (6, 9, 11, 12, 16, 18)} <= found
        assert not any({1, 4} <= set(column) for column in found - {(0, 20)})
        place = [tuple(np.flatnonzero(c).tolist()) for c in fit.model.mixing.T].index((0, 20))
        assert fit.model.probability[place] == pytest.approx(0.2)
        assert fit.probability_error[place] == 0

    def test_rare_sources_are_left_out_where_asked(self):
        truth, rows = karen()
        fit = learned(rows, min_probability=0.06)
        assert 0 < fit.model.n_sources < truth.n_sources
        assert fit.model.probability.min() >= 0.06

    def test_rows_with_too_many_states_are_left_out_of_the_search(self, monkeypatch):
        truth, rows = karen(0.0)
        limits = Limits(1e-3, 0.02, 128, 1 << 20)
        monkeypatch.setattr(states, "QUICK", limits)
        data = PatternCounts.of(rows)
        table, settings = Varying.of(data, (), ()), Settings()
        shape = first_shape(table, settings)
        start = Start(as_sets(sorted(columns(truth))), np.full(15, 0.05), np.ones(15, dtype=bool), np.array([0.01]))
        search = row_task(table, settings, start, shape, limits).search(start)
        assert search.surface.cells.weights.size < data.weights.size
        assert columns(learned(rows).model) == columns(truth)
        monkeypatch.setattr(states, "MOST_CUT", 0.0)
        assert row_task(table, settings, start, shape, limits) is None

    def test_order_of_rows_and_threads_change_nothing(self):
        _, rows = karen()
        document = learned(rows).document()
        assert Likelihood(n_jobs=2).fit(PatternCounts.of(rows[::-1]), np.random.default_rng(0)).document() == document

    def test_ctrl_c_keeps_the_best_so_far(self, monkeypatch):
        truth, rows = karen()

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(search, "report", interrupt)  # the learner before it reports, too
        with pytest.warns(BicaWarning, match="best model so far"):
            fit = learned(rows)
        assert not fit.converged
        assert fit.diagnostics["interrupted"] is True
        assert fit.model.n_sources > truth.n_sources // 2

    def test_sixty_four_sensors(self):
        """The last sensor is the sign bit."""
        shifted = [[i + 43 for i in source] for source in KAREN]
        truth, rng = network([*shifted, list(range(22)), list(range(18, 45))], 0.01, 0, probability=(0.04, 0.12))
        fit = learned(truth.sample(4000, rng))
        assert columns(fit.model) == columns(truth)


def test_a_set_that_does_not_better_the_best_is_not_refitted_again(monkeypatch):
    truth, rng = network(GARR200212, 0.05, 1, probability=(0.05, 0.3))
    task = lattice_task(Varying.of(PatternCounts.of(truth.sample(1000, rng)), (), ()), Likelihood())
    looking = task.search()
    looking.run()
    moves = (search.add, search.drop, search.exchange_for_steep)
    looking.run(moves)  # which may still meet sets that only other moves left aside
    best = looking.best
    monkeypatch.setattr(Scale, "best", lambda *_, **__: pytest.fail("this set was refitted before"))
    assert looking.run(moves) is best

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, SettingError
from bica.progress import listening
from bica.rivals.counted import Attempt, counted_fit, fit_best_start

DATA = PatternCounts.of([[1, 0], [1, 1], [0, 0], [1, 0]])  # distinct rows: 00, 10, 11


def attempt(score):
    activity = np.array([[False], [score > 1], [True]])
    return Attempt(np.array([[True], [False]]), activity, "estimate", score, {"objective": [score]}, True)


def test_the_lowest_score_wins_and_all_are_told():
    found = fit_best_start(
        "rival", DATA, lambda number, _: attempt([3.0, 0.5, 2.0][number]), 3, np.random.default_rng(0)
    )
    assert found.diagnostics["scores"] == [3.0, 0.5, 2.0]
    assert found.diagnostics["objective"] == [0.5]
    assert found.model.probability.tolist() == [0.25]


def test_starts_report_their_progress_and_draw_from_streams_of_their_own():
    seen, drawn = [], []

    def start(number, rng):
        drawn.append(rng.random())
        return attempt(1.0)

    with listening(lambda what, done, total: seen.append((what, done, total))):
        fit_best_start("rival", DATA, start, 2, np.random.default_rng(0))
    assert seen == [("starts of rival", done, 2) for done in range(3)]
    assert drawn[0] != drawn[1]


def test_ctrl_c_keeps_the_starts_that_are_done():
    def start(number, _):
        if number == 2:
            raise KeyboardInterrupt
        return attempt(2.0 - number)

    with pytest.warns(BicaWarning, match="best of the starts so far"):
        found = fit_best_start("rival", DATA, start, 5, np.random.default_rng(0))
    assert not found.converged
    assert found.diagnostics["interrupted"]
    assert found.diagnostics["scores"] == [2.0, 1.0]


def test_ctrl_c_before_the_first_start_passes():
    def start(number, _):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_best_start("rival", DATA, start, 5, np.random.default_rng(0))


def test_no_start_is_refused():
    with pytest.raises(SettingError, match="n_init is 0"):
        fit_best_start("rival", DATA, lambda *_: attempt(1.0), 0, np.random.default_rng(0))


def test_counts_become_probabilities_and_wrong_cells_the_noise():
    mixing = np.array([[1, 0, 1], [1, 1, 0]], dtype=bool)
    activity = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1]], dtype=bool)  # 11 is explained as 10
    fit = counted_fit("rival", DATA, mixing, activity, "estimate")
    assert fit.model.mixing.tolist() == [[True], [False]]  # sources that are never on are left out
    assert fit.model.probability.tolist() == [0.75]
    assert fit.model.noise.miss == 1 / 8

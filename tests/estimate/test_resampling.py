"""Rows drawn again, fits in threads, and Ctrl-C."""

import os
import signal
import threading
from dataclasses import dataclass

import numpy as np
import pytest

from bica.data.patterns import PatternCounts
from bica.estimate.bootstrap import fits_to_resamples, interrupts_noted, resampled
from bica.model.fit import Fit
from bica.model.or_mixture import OrMixture
from bica.progress import listening, report

RNG = np.random.default_rng
ROWS = [[0, 0]] * 50 + [[1, 0]] * 30 + [[1, 1]] * 20
DATA = PatternCounts.of(ROWS)


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """Also where the tests themselves run in the background, which ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestResampled:
    def test_counts_have_the_mean_and_the_spread_of_a_multinomial(self):
        rng, n = RNG(5), 2000
        drawn = np.array([resampled(DATA, rng).weights for _ in range(n)])  # no row can vanish: 0.8^100 < 1e-9
        share = DATA.weights / 100
        variance = 100 * share * (1 - share)
        # four standard errors of a mean, and of a variance (relative error sqrt(2 / n))
        assert (np.abs(drawn.mean(axis=0) - DATA.weights) < 4 * np.sqrt(variance / n)).all()
        assert (np.abs(drawn.var(axis=0) / variance - 1) < 4 * np.sqrt(2 / n)).all()
        assert (drawn.sum(axis=1) == 100).all()

    def test_rows_that_were_not_drawn_are_gone_and_the_rest_keep_their_cells(self):
        data = PatternCounts.of(np.ma.masked_array(np.eye(40, dtype=int), mask=np.eye(40, k=1, dtype=bool)))
        again = resampled(data, RNG(0))
        assert 0 < len(again.weights) < 40
        assert (again.weights > 0).all()
        cells = {(p.tobytes(), o.tobytes()) for p, o in zip(data.patterns, data.observed, strict=True)}
        assert {(p.tobytes(), o.tobytes()) for p, o in zip(again.patterns, again.observed, strict=True)} < cells

    def test_weights_count_as_rows(self):
        weighted = PatternCounts(DATA.patterns, DATA.weights / 8, DATA.sensors)
        assert resampled(weighted, RNG(0)).n_samples == round(100 / 8)
        tiny = PatternCounts(DATA.patterns, DATA.weights / 1e6, DATA.sensors)
        assert resampled(tiny, RNG(0)).n_samples == 1

    def test_the_data_stay_as_they_were(self):
        before = DATA.weights.copy()
        resampled(DATA, RNG(0))
        assert DATA.weights.tolist() == before.tolist()


@dataclass(frozen=True)
class Counting:
    """A method that keeps what it was given, and presses Ctrl-C at one call."""

    calls: list
    interrupt_at: int = -1
    catches: bool = False

    def fit(self, data, rng):
        report("inner steps", 1, 2)
        self.calls.append(data.weights.tolist())
        if len(self.calls) - 1 == self.interrupt_at:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if not self.catches:
                    raise
        chance = data.weights[-1] / data.n_samples
        return Fit(OrMixture([[1], [1]], [chance * rng.uniform(0.9, 1)]), n_samples=data.n_samples)


def answers(method, n_resamples=8, n_jobs=1, seed=3):
    return [fit.model.probability[0] for fit in fits_to_resamples(method, DATA, n_resamples, RNG(seed), n_jobs)]


def test_threads_change_nothing():
    alone = answers(Counting([]))
    assert answers(Counting([]), n_jobs=3) == alone
    assert answers(Counting([])) == alone
    assert answers(Counting([]), seed=4) != alone
    assert len(set(alone)) > 1


@pytest.mark.parametrize("catches", [False, True], ids=["the method lets it pass", "the method catches it"])
def test_ctrl_c_keeps_what_was_done_before(catches):
    whole = answers(Counting([]))
    method = Counting([], interrupt_at=3, catches=catches)
    assert answers(method) == whole[:3]
    assert len(method.calls) == 4


def test_ctrl_c_before_the_first_is_raised():
    with pytest.raises(KeyboardInterrupt):
        answers(Counting([], interrupt_at=0))


def test_ctrl_c_while_threads_work_keeps_a_beginning():
    @dataclass(frozen=True)
    class Slow(Counting):
        def fit(self, data, rng):
            if len(self.calls) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.02)
            return super().fit(data, rng)

    whole = answers(Counting([]), 200)
    try:
        kept = answers(Slow([]), 200, n_jobs=2)
    except KeyboardInterrupt:
        kept = []
    assert kept == whole[: len(kept)]
    assert len(kept) < 200


def test_the_old_handler_is_back_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_noted() as interrupted:
        assert not interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert len(answers(Counting([], interrupt_at=3), 5)) == 5


def test_outside_the_main_thread_it_works_too():
    found = []
    worker = threading.Thread(target=lambda: found.extend(answers(Counting([]))))
    worker.start()
    worker.join()
    assert found == answers(Counting([]))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_resamples_are_reported_and_the_steps_inside_are_not(n_jobs):
    heard = []
    with listening(lambda *told: heard.append(told)):
        answers(Counting([]), 3, n_jobs)
    assert heard == [("resamples", done, 3) for done in range(4)]

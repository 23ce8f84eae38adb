"""Ctrl-C leaves the best model so far, marked as not converged; batches add up to the whole."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bica import BICA
from bica.data.writers import csv_bytes
from bica.errors import BicaWarning
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import listening
from tests.estimate.test_likelihood import SENSORS, chain, drawn, learned

DATA = drawn(chain(Noise.flips(0.05)), 2000)


def interrupted(after, **settings):
    """A fit in which Ctrl-C is pressed at the first report of so many sources."""

    def listener(what, done, _):
        if what.endswith("sources") and done >= after:
            raise KeyboardInterrupt

    with listening(listener), pytest.warns(BicaWarning, match="interrupted: this is the best model so far"):
        return learned(DATA, **settings)


def test_the_best_so_far_is_kept():
    whole = learned(DATA)
    assert whole.converged
    assert "interrupted" not in whole.diagnostics
    scores = []
    for after in (1, 2, 4):
        fit = interrupted(after)
        assert not fit.converged
        assert fit.diagnostics["interrupted"] is True
        assert fit.model.n_sources >= after
        scores.append(fit.diagnostics["score"])
    assert scores == sorted(scores)
    assert scores[-1] < whole.diagnostics["score"]


@pytest.mark.parametrize("noise", ["estimate", "per-sensor", Noise(), Noise.flips(0.05), Noise(0.0, 0.1)], ids=str)
@pytest.mark.filterwarnings("ignore:the rows leave the error rates")
def test_it_fits_its_own_noise_and_its_file(noise, tmp_path):
    """Also in the middle of a first search whose noise is not the one that was asked for."""
    fit = interrupted(2, noise=noise)
    assert np.isfinite(fit.log_likelihood)
    assert fit.log_likelihood == pytest.approx(fit.model.log_likelihood(DATA))
    assert noise in ("estimate", "per-sensor") or fit.model.noise == noise
    fit.save(tmp_path / "m.json")
    assert Fit.load(tmp_path / "m.json").converged is False
    assert json.loads((tmp_path / "m.json").read_text())["fitted"]["converged"] is False


def test_bica_keeps_it_too():
    def listener(what, *_):
        if what.endswith("sources"):
            raise KeyboardInterrupt

    with listening(listener), pytest.warns(BicaWarning, match="interrupted"):
        found = BICA().fit(DATA)
    assert not found.fit_.converged
    assert found.fit(DATA).fit_.converged


# The command line, with a real signal to itself once the search is under way: no guess how long that takes.
INTERRUPTING = """
import os, signal
from bica.cli.app import main
from bica.estimate import search

usual, reports = search.report, []

def report(*told):
    reports.append(told)
    if len(reports) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    usual(*told)

search.report = report
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C reaches a child differently there")
def test_ctrl_c_on_the_command_line_writes_the_model_whole(tmp_path):
    (tmp_path / "t.csv").write_bytes(csv_bytes(chain().sample(500, np.random.default_rng(1)), SENSORS))
    command = [sys.executable, "-c", INTERRUPTING, "fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "m.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | {"COLUMNS": "200"})
    assert done.returncode == 130, done.stderr
    assert "bica: warning: interrupted: this is the best model so far" in done.stderr
    assert "Traceback" not in done.stderr
    assert "it had not settled" in done.stdout
    fit = Fit.load(tmp_path / "m.json")
    assert not fit.converged
    assert fit.model.n_sources >= 1


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C reaches a child differently there")
def test_an_unfinished_model_goes_beside_the_one_that_was_to_be_replaced(tmp_path):
    (tmp_path / "t.csv").write_bytes(csv_bytes(chain().sample(500, np.random.default_rng(1)), SENSORS))
    (tmp_path / "m.json").write_text("a finished model")
    words = ["fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "m.json"), "--force"]
    done = subprocess.run([sys.executable, "-c", INTERRUPTING, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 130, done.stderr
    assert (tmp_path / "m.json").read_text() == "a finished model"
    assert not Fit.load(tmp_path / "m.unfinished.json").converged
    beside = tmp_path / "m.unfinished.json"
    assert f"{tmp_path / 'm.json'} is as it was; the unfinished model is in {beside}\n" in done.stderr
    assert len(list(tmp_path.iterdir())) == 3


class TestBatches:
    ROWS = chain(Noise.flips(0.05)).sample(1500, np.random.default_rng(2)).astype(float)

    def test_partial_fits_are_the_fit_of_all_rows(self, tmp_path):
        BICA().fit(self.ROWS).save(tmp_path / "whole")
        learner = BICA()
        for part in np.array_split(self.ROWS, 4):
            learner.partial_fit(part)
        learner.save(tmp_path / "parts")
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()

    def test_also_with_gaps_and_weights(self, tmp_path):
        rows = np.where(np.random.default_rng(3).random(self.ROWS.shape) < 0.1, np.nan, self.ROWS)
        weights = np.random.default_rng(4).integers(1, 4, len(rows))
        whole = BICA(noise=0.05).fit(rows, sample_weight=weights)
        learner = BICA(noise=0.05)
        for start in range(0, 1500, 500):
            learner.partial_fit(rows[start : start + 500], sample_weight=weights[start : start + 500])
        assert learner.fit_.document() == whole.fit_.document()

import numpy as np
import pytest

from bica.data import columns
from bica.data.tables import open_table
from bica.errors import DataError
from bica.invert.decode import decode, decode_table
from bica.kernels.bits import packed
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import listening
from bica.simulate import random_network


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    drawn = random_network(9, 6, noise=Noise.flips(0.05), rng=rng)
    model = OrMixture(drawn.mixing, drawn.probability, drawn.noise, sensors=[f"s{i}" for i in range(9)])
    return model, model.sample(500, rng)


def test_chunks_and_the_order_of_columns_change_nothing(problem, tmp_path, monkeypatch):
    model, rows = problem
    order = np.random.default_rng(1).permutation(9)
    header = ",".join(model.sensors[i] for i in order)
    np.savetxt(tmp_path / "t.csv", rows[:, order], fmt="%d", delimiter=",", header=header, comments="")
    monkeypatch.setattr(columns, "CELLS_A_CHUNK", 9 * 70)
    found = list(decode_table(model, open_table(tmp_path / "t.csv")))
    assert len(found) > 3
    np.testing.assert_array_equal(np.vstack([part.activity for part in found]), decode(model, packed(rows)).activity)


def test_it_tells_how_many_rows_are_done(problem):
    model, rows = problem
    told = []
    with listening(lambda *report: told.append(report)):
        list(decode_table(model, open_table(rows, sensors=model.sensors)))
    assert told[-1] == ("rows decoded", 500, None)


def test_columns_without_names_are_taken_in_order(problem):
    model, rows = problem
    named = model.of_sensors(range(9))
    (found,) = decode_table(named, open_table(rows))
    np.testing.assert_array_equal(found.activity, decode(model, packed(rows)).activity)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(9, "no column 's0', which the model watches"), (11, "a column 'extra' that the model does not know")],
)
def test_other_columns_are_refused_at_once(problem, columns, sentence):
    model, _ = problem
    names = [f"y{i}" for i in range(9)] if columns == 9 else [*model.sensors, "extra", "more"]
    with pytest.raises(DataError, match=sentence):
        decode_table(model, open_table(np.zeros((2, columns)), sensors=names))

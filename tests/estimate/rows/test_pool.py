"""The row-based rounds on real structures."""

import csv

import numpy as np
import pytest
import scipy.sparse

from bica.data.patterns import PatternCounts
from bica.estimate.rows.pool import RowPool, RowTable
from bica.estimate.rows.rounds import row_rounds


@pytest.mark.slow
def test_all_diseases_are_found_and_no_other(shared_data):
    folder = shared_data / "disease_symptom_kb"
    rows = scipy.sparse.load_npz(folder / "X_sim_exact.npz")
    with (folder / "X_sim_exact_columns.csv").open() as file:
        place = {line[-1]: k for k, line in enumerate(list(csv.reader(file))[1:])}
    with (folder / "G.csv").open() as file:
        lines = list(csv.reader(file))
    columns = [
        tuple(sorted(place[line[0]] for line in lines[1:] if float(line[source]) > 0))
        for source in range(1, len(lines[0]))
    ]
    fit = row_rounds(RowTable.of(PatternCounts.of(rows)), RowPool.of(), 0.02, np.random.default_rng(0))
    assert sorted(fit.columns) == sorted(columns)

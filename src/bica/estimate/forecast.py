"""What learning from a table takes: seconds and memory, by a short trial."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import process_time

import numpy as np

from bica.data.observations import Observations, TableSums
from bica.data.partitions import KEPT_BYTES
from bica.data.patterns import PatternCounts
from bica.diagnose.table import TableCheck
from bica.errors import LimitError
from bica.estimate.likelihood import AT_ONCE, Likelihood
from bica.estimate.settings import WORD
from bica.kernels.compiled import n_compiled
from bica.progress import memory_left, time_limited

BYTES_A_CELL = 48  # of the lattice: six tables of floats are alive at once
BYTES_A_PAIR = 48  # six squares of floats
BYTES_OF_A_PASS = 80e6  # over a table that is summed: partitions in hand, histograms and batches
BYTES_A_ROW = 1.0  # and sensor: rows, columns and the ones of both as bits and lists
TRIAL = 3.0  # seconds of CPU time for which a fit is tried, to see how long it takes
LONGER_AT_ONCE, LONGER_ON_STATES, LONGER_FROM_BLOCKS = 3.0, 4.0, 3.0  # times the trial: half way in logs to the longest
MANY_ONES, LONGER_FROM_ROWS = 100, 15.0  # ones in a row: with more, wide sources take many rounds on rows
SECONDS_A_BLOCK = 0.008  # measured with 50 000 rows; half of it goes with the rows
SECONDS_A_PAIR_AND_ROW = 4e-12
MOST_TRIALS = 20  # after an install the first ones only compile; each goes some kernels further


@dataclass(frozen=True, slots=True)
class Forecast:
    """What learning from a table takes."""

    method: str
    seconds: float  # of one core
    megabytes: float
    sentence: str


def forecast(data: PatternCounts | TableSums, table: TableCheck) -> Forecast:
    """What learning takes, mostly to a factor of three: it is tried for three seconds; beyond, its size says.

    Which search a table needs shows only in the search: of two tables of one size, one may take ten times as long.

    >>> from bica.data.patterns import PatternCounts
    >>> counts = PatternCounts.of([[0, 1], [1, 1], [0, 0]])
    >>> forecast(counts, TableCheck.of(counts)).sentence
    'method likelihood, all sensors at once: less than 3 seconds'
    """
    at_once = table.n_varying <= AT_ONCE
    megabytes = bytes_needed(data, table.n_varying, table.most_distinct) / 1e6
    try:
        seconds, ended = _tried(data)
    except LimitError as error:
        return Forecast("likelihood", 0.0, megabytes, f"method likelihood cannot learn from this table: {error}")
    if not ended:
        seconds = _longer(table, float(data.ones().sum()) / data.n_samples)
    how = f"less than {TRIAL:.0f} seconds" if ended else _duration(seconds)
    memory = f" and {megabytes:.0f} MB" if megabytes >= 1 else ""
    way = "all sensors at once" if at_once else "from blocks of sensors"
    return Forecast("likelihood", seconds, megabytes, f"method likelihood, {way}: {how}{memory}")


def bytes_needed(data: Observations, n_varying: int, n_distinct: float) -> float:
    """What learning takes beside what is in memory already."""
    if n_varying <= AT_ONCE:
        return BYTES_A_CELL * 2.0**n_varying
    rows = BYTES_A_ROW * n_distinct * n_varying
    if isinstance(data, TableSums):
        rows = min(KEPT_BYTES, data.n_samples * n_varying / 8) + BYTES_OF_A_PASS
    return BYTES_A_PAIR * n_varying**2 + rows


def check_memory(data: Observations) -> None:
    """Refuse to begin what takes more memory than is left.

    >>> from bica.progress import memory_limited
    >>> with memory_limited(1e12):
    ...     check_memory(PatternCounts.of([[0, 1], [1, 1]]))
    """
    needed, left = bytes_needed(data, data.varying().size, data.n_distinct or 0), memory_left()
    if needed > left:
        raise LimitError(
            f"learning from these {data.n_sensors} sensors takes about {needed / 1e6:.0f} MB, but of what was allowed "
            f"{left / 1e6:.0f} MB are left; allow more, or take fewer columns"
        )


def _tried(data: PatternCounts | TableSums) -> tuple[float, bool]:
    """How long a fit ran, in seconds of CPU time, and whether it came to its end; again if it had to compile."""
    for _ in range(MOST_TRIALS):
        compiled, begun = n_compiled(), process_time()
        with time_limited(TRIAL, process_time), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = Likelihood().fit(data, np.random.default_rng(0))
        if n_compiled() == compiled:
            break
    return process_time() - begun, "interrupted" not in fit.diagnostics


def _longer(table: TableCheck, ones_per_row: float) -> float:
    """How long a fit takes that is not done after the trial."""
    if table.n_varying <= AT_ONCE:
        return TRIAL * LONGER_AT_ONCE
    if table.n_varying <= WORD:
        return TRIAL * LONGER_ON_STATES
    seconds = table.n_varying * SECONDS_A_BLOCK * (0.5 + table.most_distinct / 1e5)
    seconds += SECONDS_A_PAIR_AND_ROW * table.n_varying**2 * table.most_distinct
    return max(TRIAL * (LONGER_FROM_ROWS if ones_per_row > MANY_ONES else LONGER_FROM_BLOCKS), seconds)


def _duration(seconds: float) -> str:
    return f"some {seconds:.0f} seconds" if seconds < 100 else f"some {seconds / 60:.0f} minutes"

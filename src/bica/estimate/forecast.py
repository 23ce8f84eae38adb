"""Which way the likelihood takes with a table, and roughly what that costs."""

from dataclasses import dataclass

from bica.estimate.likelihood import AT_ONCE
from bica.model.table_check import TableCheck

BYTES_A_CELL = 48  # of the lattice: six tables of floats are alive at once
SECONDS_A_CELL = 1.2e-4  # measured on one slow core with 10 % noise, 14 to 16 sensors; noise-free tables take a quarter
SECONDS_AT_LEAST = 0.1
BYTES_A_PAIR = 48  # six squares of floats
BYTES_A_ROW = 1.0  # and sensor: rows, columns and the ones of both as bits and lists
SECONDS_A_BLOCK = 0.02  # measured on two slow cores with 50 000 rows; half of it goes with the rows
SECONDS_A_PAIR_AND_ROW = 4e-12


@dataclass(frozen=True, slots=True)
class Forecast:
    """What learning from a table takes."""

    method: str
    seconds: float
    megabytes: float
    sentence: str


def forecast(table: TableCheck) -> Forecast:
    """The exact likelihood of all sensors up to 16 that vary, blocks and rows beyond; to a factor of five or so.

    >>> from bica.data.patterns import PatternCounts
    >>> forecast(TableCheck.of(PatternCounts.of([[0, 1], [1, 1], [0, 0]]))).sentence
    'method likelihood, all sensors at once: less than a second, however many rows; far longer for a hundred sources'
    """
    if table.n_varying <= AT_ONCE:
        seconds = SECONDS_AT_LEAST + SECONDS_A_CELL * 2**table.n_varying
        megabytes = BYTES_A_CELL * 2**table.n_varying / 1e6
        how = f"{_duration(seconds)} and {megabytes:.0f} MB" if megabytes >= 1 else _duration(seconds)
        sentence = f"method likelihood, all sensors at once: {how}, however many rows"
        return Forecast("likelihood", seconds, megabytes, f"{sentence}; far longer for a hundred sources")
    seconds = table.n_varying * SECONDS_A_BLOCK * (0.5 + table.n_distinct / 1e5)
    seconds += SECONDS_A_PAIR_AND_ROW * table.n_varying**2 * table.n_distinct
    megabytes = (BYTES_A_PAIR * table.n_varying**2 + BYTES_A_ROW * table.n_distinct * table.n_varying) / 1e6
    return Forecast(
        "likelihood",
        seconds,
        megabytes,
        f"method likelihood, from blocks of sensors: {_duration(seconds)} and {max(1.0, megabytes):.0f} MB "
        "where sources reach few sensors, a few times that where they reach many",
    )


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"some {seconds:.0f} seconds" if seconds < 100 else f"some {seconds / 60:.0f} minutes"

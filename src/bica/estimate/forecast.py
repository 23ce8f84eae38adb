"""Which method suits a table, and roughly what it will take."""

from dataclasses import dataclass

from bica.estimate.lattice_task import LATTICE_SENSORS
from bica.model.table_check import TableCheck

BYTES_A_CELL = 48  # six tables of floats are alive at once
SECONDS_A_CELL = 1.2e-4  # measured on one slow core with 10 % noise, 14 to 16 sensors; noise-free tables take a quarter
SECONDS_AT_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class Forecast:
    """What learning from a table takes; None where nobody knows before."""

    method: str | None  # None if there is no method for such a table
    seconds: float | None
    megabytes: float | None
    sentence: str


def forecast(table: TableCheck) -> Forecast:
    """The exact likelihood up to 20 sensors that vary, the paper's algorithm beyond; to a factor of five or so.

    >>> from bica.data.patterns import PatternCounts
    >>> forecast(TableCheck.of(PatternCounts.of([[0, 1], [1, 1], [0, 0]]))).method
    'likelihood'
    """
    if table.n_varying <= LATTICE_SENSORS:
        seconds = SECONDS_AT_LEAST + SECONDS_A_CELL * 2**table.n_varying
        megabytes = BYTES_A_CELL * 2**table.n_varying / 1e6
        how = f"{_duration(seconds)} and {megabytes:.0f} MB" if megabytes >= 1 else _duration(seconds)
        return Forecast("likelihood", seconds, megabytes, f"method likelihood, exact: {how}, however many rows")
    many = f"{table.n_varying} sensors vary, and the exact likelihood ends at {LATTICE_SENSORS}"
    if table.missing_share:
        return Forecast(None, None, None, f"{many}; no other method takes missing cells: watch fewer sensors")
    sentence = f"{many}: method findbica, in seconds where sources are few and reach few sensors"
    return Forecast("findbica", None, None, sentence)


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    return f"some {seconds:.0f} seconds" if seconds < 100 else f"some {seconds / 60:.0f} minutes"

"""Every exception and warning of this package, as one tree; each is also a builtin.

>>> from bica import BICA, errors
>>> try:
...     BICA().fit([[0, 2]])
... except errors.DataError as error:  # also a ValueError
...     print(error)
row 0, column 'x1' holds 2, but only 0 and 1 can be read; turn measurements into 0/1 with `binarize`
"""


class BicaError(Exception):
    """Anything this package raises on purpose."""


class DataError(BicaError, ValueError):
    """The input cannot be read as binary observations."""


class RowError(DataError):
    """A row cannot be read; readers that know the line in its file name that instead."""

    def __init__(self, row: int, trouble: str, before: str = "") -> None:
        super().__init__(row, trouble, before)
        self.row = row  # counted from 0
        self._words = before, trouble

    def __str__(self) -> str:
        return self.at(f"row {self.row}")

    def at(self, place: str) -> str:
        """The sentence with the row called ``place``."""
        return place.join(self._words)


class ModelError(BicaError, ValueError):
    """The numbers given do not describe an OR mixture."""


class ModelFileError(ModelError):
    """The file is not a model that this version can read."""


class SettingError(BicaError, ValueError):
    """An option has a value that means nothing here."""


class InfeasibleError(DataError):
    """No set of sources produces the observation, and the noise is said to be zero."""


class LimitError(BicaError, MemoryError):
    """The problem is larger than this method can solve."""


class OutputError(BicaError, OSError):
    """The result cannot be written where it was asked for."""


class MissingExtraError(BicaError, ImportError):
    """An optional package is needed here and not installed."""


class BicaWarning(UserWarning):
    """Something that the user should know but that stops nothing."""


class ColumnWarning(BicaWarning):
    """A column of a table was taken for something else than a sensor."""


class MisfitWarning(BicaWarning):
    """The rows contradict the model that was learned from them."""


class Terminated(BaseException):
    """The program was asked to end. Unlike Ctrl-C, nothing answers this with what was found so far."""

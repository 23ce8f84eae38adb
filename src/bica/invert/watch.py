"""Rows as they arrive: which sources switch on and off, and whether the world is still that of the model.

The alarm for a changed world is a Shiryaev-Roberts detector. A *bet* is a number e >= 0 for every row whose mean is 1
if the row comes from the model, whatever came before. Its statistic

    R <- (1 + R) e

grows by one per row on average as long as the model holds, so R minus the number of rows is a martingale, and so is the
mean of several such statistics. Stopped when the mean reaches A, it has taken A rows or more on average: one false
alarm in A rows at most, for independent rows of the model. Once rows have changed, the bets on that change grow
exponentially.

There are bets on every sensor (that its odds of being on have risen or fallen), and on rows as a whole: U is the share
of the model's rows that are less likely than this one, ties broken at random, hence uniform; 1 + b (1 - 2 U) pays where
rows are too unlikely. Of models with more than 16 sensors, that share is estimated from some thousand random rows.
Where summing over all activities behind a row would take milliseconds, a row is as likely as it is together with its
most probable activity: then U is the share of rows for which that is less, which is as uniform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bica.data.rows import Rows
from bica.errors import DataError, SettingError
from bica.invert.decode import Decoder
from bica.invert.elimination import Elimination
from bica.invert.groups import groups_of
from bica.invert.posterior import LATTICE_SENSORS, log_probability
from bica.kernels.bits import Words, packed
from bica.model.or_mixture import OrMixture

Vector = NDArray[np.float64]

ROWS_PER_FALSE_ALARM = 100_000
TABLE_SENSORS = 16  # up to which all rows and their probabilities are listed
QUICK_STATES = 1 << 12  # of a sum over the activities behind a row: some ten microseconds
DRAWN_ROWS = 4000  # that stand for all rows of a wider model
ODDS = (4.0, 2.0, 0.5, 0.1)  # of a sensor being on: the changes that are bet on
STAKES = (0.2, 0.5, 0.9)  # of the bets on unlikely rows
NAMED = 5  # sensors in an alarm
CACHED_ROWS = 1 << 16  # distinct rows whose answers are kept
LEAST_RATE = 1e-9  # of a sensor that the model never, or always, switches on


@dataclass(frozen=True, slots=True)
class Alarm:
    """The rows since the last alarm are no longer those of the model."""

    rows_per_false_alarm: float
    sensors: tuple[tuple[str, str], ...]  # the clearest first: name, and "more often" or "less often"; may be empty

    def sentence(self) -> str:
        """What changed, in plain words.

        >>> Alarm(1e5, (("door", "more often"),)).sentence()
        'the world has changed: door is on more often than the model expects (one such alarm in 100000 rows is false)'
        """
        what = " and ".join(f"{name} is on {how} than the model expects" for name, how in self.sensors)
        what = what or "rows are less likely than those of the model"
        return f"the world has changed: {what} (one such alarm in {self.rows_per_false_alarm:.15g} rows is false)"


Chances = Callable[[Words], Vector]  # how likely each complete row is: the log of a probability, or what stands for it


class DriftDetector:
    """Watches whether rows still come from a model; see the head of this file for what it promises.

    ``chances`` says how likely rows are, on the scale of what ``see`` is given; without it, the log of a probability.
    """

    def __init__(
        self,
        model: OrMixture,
        rows_per_false_alarm: float = ROWS_PER_FALSE_ALARM,
        seed: int = 0,
        chances: Chances | None = None,
    ) -> None:
        if not 1 <= rows_per_false_alarm < np.inf:
            raise SettingError(f"one false alarm in {rows_per_false_alarm:g} rows cannot be promised; give 1 or more")
        self.model, self.limit = model, float(rows_per_false_alarm)
        self._rng = np.random.default_rng([seed, 1])
        likelihoods, shares, on = _rows_of(model, np.random.default_rng([seed, 2]), chances)
        order = np.argsort(likelihoods, kind="stable")
        self._likelihood, self._below = likelihoods[order], np.concatenate([[0.0], np.cumsum(shares[order])])
        rate = np.clip(on, LEAST_RATE, 1 - LEAST_RATE)
        tilted = np.array([odds * rate / (1 - rate + odds * rate) for odds in ODDS])
        self._if_on, self._if_off = tilted / rate, (1 - tilted) / (1 - rate)  # what each bet on a sensor pays
        self._statistic = np.zeros(len(STAKES) + tilted.size)

    def see(self, cells: NDArray[np.uint8], observed: NDArray[np.bool_], log_chance: float) -> Alarm | None:
        """Take in one row; cells that were not observed, and bets that need them, count for nothing."""
        return self.see_many(cells[None], observed[None], np.array([log_chance]))[0]

    def see_many(
        self, cells: NDArray[np.uint8], observed: NDArray[np.bool_], log_chances: Vector
    ) -> list[Alarm | None]:
        """Take in several rows, one after another: (n_rows, n_sensors), and the log of the probability of each."""
        paid = np.where(cells[:, None] == 1, self._if_on, self._if_off)
        paid = np.where(observed[:, None], paid, 1.0).reshape(len(cells), self._if_on.size)
        shares = self._shares_below(log_chances, np.asarray(observed.all(axis=1)))
        whole = 1 + np.array(STAKES) * (1 - 2 * shares[:, None])
        return [self._bet(paying) for paying in np.hstack([whole, paid])]

    def _bet(self, paying: Vector) -> Alarm | None:
        """One row further, by what it pays on each bet."""
        self._statistic = (1 + self._statistic) * paying
        if self._statistic.mean() < self.limit:
            return None
        alarm = self._alarm()
        self._statistic[:] = 0.0
        return alarm

    def are_strange(self, log_chances: Vector) -> NDArray[np.bool_]:
        """Which rows are so unlikely that the model shows such a row less often than it raises a false alarm."""
        return np.asarray(self._shares(log_chances)[1] <= 1 / self.limit)

    def _shares_below(self, log_chances: Vector, complete: NDArray[np.bool_]) -> Vector:
        """The share of the model's rows that are less likely, and a random part of those that are as likely.

        One half for rows that are not complete.
        """
        low, high = self._shares(log_chances[complete])
        shares = np.full(complete.size, 0.5)
        shares[complete] = np.minimum(1.0, low + self._rng.random(low.size) * (high - low))
        return shares

    def _shares(self, log_chances: Vector) -> tuple[Vector, Vector]:
        """The shares of the model's rows that are less likely, and that are not more likely."""
        rounding = np.where(np.isfinite(log_chances), 1e-9 * np.maximum(1.0, np.abs(log_chances)), 0.0)
        low = self._below[np.searchsorted(self._likelihood, log_chances - rounding, side="left")]
        high = self._below[np.searchsorted(self._likelihood, log_chances + rounding, side="right")]
        return low, high

    def _alarm(self) -> Alarm:
        by_sensor = self._statistic[len(STAKES) :].reshape(len(ODDS), -1)
        clear = np.flatnonzero(by_sensor.max(axis=0) > self._statistic.max() / 100)
        order = clear[np.argsort(-by_sensor.max(axis=0)[clear], kind="stable")][:NAMED]
        words = ["more often" if odds > 1 else "less often" for odds in ODDS]
        named = [(self.model.sensors[i], words[int(by_sensor[:, i].argmax())]) for i in order.tolist()]
        return Alarm(self.limit, tuple(named))


def _rows_of(
    model: OrMixture, rng: np.random.Generator, chances: Chances | None = None
) -> tuple[Vector, Vector, Vector]:
    """Log-likelihoods of the model's rows, the share of each, and how often every sensor is on."""
    if model.n_sensors <= TABLE_SENSORS and chances is None:
        shares = model.pattern_probability()
        bits = (np.arange(shares.size)[:, None] >> np.arange(model.n_sensors)) & 1
        with np.errstate(divide="ignore"):
            return np.log(shares), shares, shares @ bits
    rows = model.sample(DRAWN_ROWS, rng)
    likelihoods = log_probability(model, packed(rows)).value if chances is None else chances(packed(rows))
    return likelihoods, np.full(len(rows), 1 / len(rows)), _often(model)


def _is_summed_quickly(model: OrMixture) -> bool:
    """Whether the probability of a row is a matter of microseconds."""
    wide = (group for group in groups_of(model) if group.sensors.size > LATTICE_SENSORS)
    return all(group.reach is None and Elimination(group).n_states(QUICK_STATES) is not None for group in wide)


def _often(model: OrMixture) -> Vector:
    """How often each sensor shows a 1."""
    false_alarm, miss = model.noise.rates(model.n_sensors)
    quiet = np.prod(1 - model.probability * model.reach, axis=1)
    often: Vector = false_alarm * quiet + (1 - miss) * (1 - quiet)
    return often


@dataclass(frozen=True, slots=True)
class Sight:
    """What one row says."""

    row: int  # counted from 1
    active: tuple[int, ...]  # the sources that are on; as before where no set of sources explains the row
    switched_on: tuple[int, ...]
    switched_off: tuple[int, ...]
    log_probability: float  # of the row, or of it with ``active`` where more are too many; minus infinity: impossible
    alarm: Alarm | None

    @property
    def is_news(self) -> bool:
        """Whether a source switched, or the world changed."""
        return bool(self.switched_on or self.switched_off or self.alarm)


Row = Sequence[int | None] | NDArray[np.uint8]
_Answer = tuple[tuple[int, ...] | None, float]


class Watcher:
    """Decodes rows one by one as they arrive, and says when they are no longer those of the model.

    ``every`` takes only every so many-th row for the alarm, which supposes independent rows: where sources persist,
    give the number of rows for which they stay on.

    >>> watcher = Watcher(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    >>> [watcher.see(row).active for row in ([1, 0], [1, 1], [0, 0])]
    [(0,), (1,), ()]
    """

    def __init__(
        self,
        model: OrMixture,
        *,
        rows_per_false_alarm: float = ROWS_PER_FALSE_ALARM,
        every: int = 1,
        seed: int = 0,
    ) -> None:
        if every < 1:
            raise SettingError(f"the alarm cannot take every {every}th row; give 1 or more")
        self.model, self.every = model, every
        self._decoder = Decoder(model)
        self._sums = _is_summed_quickly(model)
        chances = None if self._sums else lambda words: -self._decoder.decode(words).cost
        self._detector = DriftDetector(model, rows_per_false_alarm, seed, chances)
        self._answers: dict[bytes, _Answer] = {}
        self._active: tuple[int, ...] = ()
        self.n_rows = self.n_strange = self.n_alarms = 0  # strange: rows that the model hardly ever shows

    def see(self, row: Row) -> Sight:
        """Take in one row: 0, 1, or None for a cell that was not observed."""
        return self.see_many([row])[0]

    def see_many(self, rows: Sequence[Row]) -> list[Sight]:
        """Take in the rows that have arrived by now, one after another: the same answers in less time.

        >>> watcher = Watcher(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
        >>> [seen.switched_on for seen in watcher.see_many([[1, 0], [1, 1], [1, 1]])]
        [(0,), (1,), ()]
        """
        if not rows:
            return []
        cells, observed = _cells_of(rows, self.model.n_sensors)
        answers = self._answers_to(cells, observed)
        chances = np.array([chance for _, chance in answers])
        strange = self._detector.are_strange(chances) & observed.all(axis=1)
        alarms: list[Alarm | None] = [None] * len(rows)
        taken = slice(-(self.n_rows + 1) % self.every, None, self.every)
        alarms[taken] = self._detector.see_many(cells[taken], observed[taken], chances[taken])
        return [
            self._sight(active, chance, bool(is_strange), alarm)
            for (active, chance), is_strange, alarm in zip(answers, strange, alarms, strict=True)
        ]

    def _sight(self, active: tuple[int, ...] | None, chance: float, is_strange: bool, alarm: Alarm | None) -> Sight:
        """What one more row says."""
        self.n_rows += 1
        self.n_strange += active is None or is_strange
        self.n_alarms += alarm is not None
        before, self._active = self._active, self._active if active is None else active
        on = tuple(j for j in self._active if j not in before)
        return Sight(self.n_rows, self._active, on, tuple(j for j in before if j not in self._active), chance, alarm)

    def _answers_to(self, cells: NDArray[np.uint8], observed: NDArray[np.bool_]) -> list[_Answer]:
        """For each row its active sources, None if no set explains it, and the log of its probability."""
        keys = [one.tobytes() + there.tobytes() for one, there in zip(cells, observed, strict=True)]
        first = {key: place for place, key in enumerate(keys) if key not in self._answers}
        if len(self._answers) + len(first) > CACHED_ROWS:
            self._answers.clear()
            first = {key: place for place, key in enumerate(keys)}
        if first:
            places = list(first.values())
            known = None if observed[places].all() else packed(observed[places])
            rows = Rows.of_words(packed(cells[places] == 1), known, self.model.n_sensors)
            found = self._decoder.decode(rows.words, rows.observed)
            chances = (-found.cost).tolist()
            if self._sums:
                chances = log_probability(self.model, rows.words, rows.observed).value.tolist()
            active = [tuple(np.flatnonzero(row).tolist()) for row in found.activity]
            answers = [(on if possible else None) for on, possible in zip(active, found.feasible, strict=True)]
            self._answers.update(zip(first, zip(answers, chances, strict=True), strict=True))
        return [self._answers[key] for key in keys]


def _cells_of(rows: Sequence[Row], n_sensors: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The cells of the rows and which of them were observed: (n_rows, n_sensors)."""
    if all(len(row) == n_sensors for row in rows):
        cells = np.array(rows)  # of numbers, unless something is missing or strange
        if cells.dtype.kind in "iub" and not ((cells != 0) & (cells != 1)).any():
            return cells.astype(np.uint8), np.ones(cells.shape, dtype=bool)
    checked = [_checked(row, n_sensors) for row in rows]
    cells, observed = (np.array(parts) for parts in zip(*checked, strict=True))
    return cells, observed


def _checked(row: Row, n_sensors: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    if len(row) != n_sensors:
        raise DataError(f"a row of {len(row)} cells came, but the model has {n_sensors} sensors")
    strange = [cell for cell in row if cell is not None and cell not in (0, 1)]
    if strange:
        raise DataError(f"a row holds {strange[0]!r}, but only 0, 1 and nothing can be read")
    observed = np.array([cell is not None for cell in row], dtype=bool)
    return np.array([1 if cell == 1 else 0 for cell in row], dtype=np.uint8), observed

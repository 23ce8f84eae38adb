"""A simulated problem: the true model, which sources were on (also over time), and what the sensors showed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import SettingError
from bica.model.or_mixture import OrMixture

ROUNDING = 1e-9  # relative: 0.9 and 9 slots belong together, though 1 - 0.9 is a little below 0.1


def markov_activity(
    probability: ArrayLike, persistence: ArrayLike, n_samples: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which sources are on in each of ``n_samples`` consecutive slots: (n_samples, n_sources).

    ``probability`` is the share of slots in which a source is on, ``persistence`` the mean number of slots that it
    then stays on (L, at least 1), for all sources or for each. Stays are geometric: an active source stops after each
    slot with probability 1/L, a silent one of probability p starts with probability p / ((1 - p) L), and the first slot
    is drawn from the stationary law. Slots are independent where L = 1 / (1 - p); neighbouring slots correlate by
    1 - 1 / (L (1 - p)). Time grows with the number of cells, without a Python loop over them.

    >>> activity = markov_activity([0.2, 0.5], 10, 100_000, np.random.default_rng(7))
    >>> activity.mean(axis=0).round(2)
    array([0.2, 0.5])
    """
    on_share = np.atleast_1d(np.asarray(probability, dtype=float))
    stay = np.asarray(persistence, dtype=float)
    _check_settings(on_share, stay, n_samples)
    stop = np.broadcast_to(1 / stay, on_share.shape)
    activity = np.empty((on_share.size, n_samples), dtype=bool)
    for row, p, leave in zip(activity, on_share, stop, strict=True):
        row[:] = _chain(p, leave, n_samples, rng)
    return np.ascontiguousarray(activity.T)


def _check_settings(on_share: NDArray[np.float64], stay: NDArray[np.float64], n_samples: int) -> None:
    if n_samples < 0:
        raise SettingError(f"{n_samples} samples cannot be drawn; give a count from 0 up")
    if on_share.ndim > 1 or stay.shape not in ((), (1,), on_share.shape):
        raise SettingError(
            f"persistence has shape {stay.shape} for probabilities of shape {on_share.shape}; give one number for all "
            "sources or one per source"
        )
    if not ((on_share >= 0) & (on_share <= 1)).all():
        raise SettingError("a probability of being on must lie in [0, 1]")
    if not (np.isfinite(stay) & (stay >= 1)).all():
        raise SettingError("persistence is a mean number of slots, so it must be finite and at least 1")
    _check_start(on_share, np.broadcast_to(stay, on_share.shape))


def _check_start(on_share: NDArray[np.float64], stay: NDArray[np.float64]) -> None:
    """Refuse probabilities for which a silent source would have to start with a probability above 1."""
    impossible = np.flatnonzero(on_share > (1 + ROUNDING) * (1 - on_share) * stay)
    if impossible.size:
        source = impossible[0]
        raise SettingError(
            f"source {source} cannot be on with probability {on_share[source]:g} in stays of {stay[source]:g} slots on "
            "average, even with one silent slot between them; raise persistence to at least p / (1 - p), or lower the "
            "probability"
        )


def _chain(p: float, stop: float, n_samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """In which slots one source is on, drawn stay by stay."""
    start = min(1.0, stop * p / (1 - p))
    if start == 0:
        return np.zeros(n_samples, dtype=bool)
    on = bool(rng.random() < p)
    first, second = (stop, start) if on else (start, stop)
    switched = np.zeros(n_samples, dtype=bool)
    slot = 0
    while slot < n_samples:
        n_pairs = 1 + int((n_samples - slot) / (1 / first + 1 / second))
        stays = np.stack([rng.geometric(first, n_pairs), rng.geometric(second, n_pairs)], axis=1)
        ends = slot + np.cumsum(np.minimum(stays, n_samples).ravel())  # the minimum keeps the sum from overflowing
        switched[ends[ends < n_samples]] = True
        slot = int(ends[-1])
    return np.logical_xor.accumulate(switched) ^ on


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows whose model and activity are known."""

    model: OrMixture
    activity: NDArray[np.bool_]  # (n_samples, n_sources), which sources were on
    rows: NDArray[np.bool_]  # (n_samples, n_sensors), what the sensors showed

    @property
    def n_samples(self) -> int:
        """How many rows were drawn."""
        return len(self.rows)


def simulate(
    model: OrMixture, n_samples: int, rng: np.random.Generator, persistence: ArrayLike | None = None
) -> Problem:
    """Draw the activity of the sources from ``model``, and the rows that its noisy sensors show of it.

    Rows are independent of each other unless ``persistence`` gives the mean number of rows for which a source stays
    on (see ``markov_activity``).

    >>> model = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> problem = simulate(model, 4, np.random.default_rng(7))
    >>> bool((problem.rows == model.observe(problem.activity)).all())  # no noise here
    True
    """
    if n_samples < 0:
        raise SettingError(f"{n_samples} samples cannot be drawn; give a count from 0 up")
    if persistence is None:
        activity = model.draw_activity(n_samples, rng)
    else:
        activity = markov_activity(model.probability, persistence, n_samples, rng)
    return Problem(model, activity, model.draw_rows(activity, rng))

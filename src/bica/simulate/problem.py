"""A simulated problem: the truth, what happened, and what the sensors showed of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import SettingError
from bica.model.or_mixture import OrMixture
from bica.simulate.activity import markov_activity


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows with a known answer."""

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
    """Draw activity from ``model``, and from it the rows that its noisy sensors show.

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
    return Problem(model, activity, model.noise.apply(model.observe(activity), rng))

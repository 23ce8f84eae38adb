"""How many sources were found exactly."""

from dataclasses import dataclass

import numpy as np

from bica.metrics.pairs import aligned
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """Found columns that are true ones to the last cell, and how far their probabilities are off."""

    n_found: int
    n_true: int
    n_exact: int
    mean_probability_error: float | None  # mean |found - true| over the exact columns; None if there are none
    max_probability_error: float | None

    @property
    def precision(self) -> float:
        """Share of the found columns that are true; 1 if nothing was found, so nothing is wrong."""
        return self.n_exact / self.n_found if self.n_found else 1.0

    @property
    def recall(self) -> float:
        """Share of the true columns that were found; 1 if there was nothing to find."""
        return self.n_exact / self.n_true if self.n_true else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 only if all was found and nothing else."""
        either = self.n_found + self.n_true
        return 2 * self.n_exact / either if either else 1.0


def column_score(found: OrMixture, truth: OrMixture) -> ColumnScore:
    """Compare the columns of two models as sets.

    >>> found = OrMixture([[1, 0, 1], [0, 1, 1]], [0.2, 0.1, 0.4])
    >>> score = column_score(found, OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
    >>> score.n_exact, score.recall, round(score.mean_probability_error, 2)
    (2, 1.0, 0.05)
    """
    left, right = _chances(aligned(found, truth)), _chances(truth)
    errors = [abs(left[column] - chance) for column, chance in right.items() if column in left]
    mean, worst = (float(np.mean(errors)), max(errors)) if errors else (None, None)
    return ColumnScore(len(left), len(right), len(errors), mean, worst)


def _chances(model: OrMixture) -> dict[bytes, float]:
    return {column.tobytes(): chance for column, chance in zip(model.columns, model.probability.tolist(), strict=True)}

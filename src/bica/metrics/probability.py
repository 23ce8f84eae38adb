"""How far the found probabilities are from the true ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from bica.errors import SettingError
from bica.metrics.pairs import probabilities


@dataclass(frozen=True, slots=True)
class ProbabilityError:
    """A divergence between probabilities, with the sources for which none was found."""

    value: float  # infinite if a source is missing and no number of samples puts a floor under it
    n_missing: int  # sources whose found probability is 0, which includes those without a match


def transmission_probability_error(
    found: ArrayLike, truth: ArrayLike, *, n_samples: float | None = None, literal: bool = False
) -> ProbabilityError:
    """Divergence between true and found probabilities of matched sources, both scaled to sum to 1.

    ``found`` is ``Match.probability``, in the order of ``truth``. A found 0 counts as ``1 / n_samples``, the least
    that so many samples can show. Each logarithm is weighted with the scaled true probability, which makes the
    measure the Kullback-Leibler divergence; ``literal`` weights with the probability itself, as printed in the paper.
    The value is 0 where no true source is ever on.

    >>> transmission_probability_error([0.2, 0.0], [0.2, 0.5], n_samples=10).n_missing
    1
    >>> round(transmission_probability_error([0.3, 0.3], [0.2, 0.6]).value, 4)
    0.1308
    """
    right = probabilities(truth, np.size(truth), "the true probability")
    left = probabilities(found, right.size, "the found probability")
    missing = left == 0
    if n_samples is not None:
        if n_samples < 1:
            raise SettingError(f"{n_samples:g} samples put no floor under a probability; give at least 1")
        left = np.where(missing, 1 / n_samples, left)
    total = right.sum()
    divergence = rel_entr(right / (total or 1), left / (left.sum() or 1)).sum()
    # rounding can leave a divergence of 0 a little below it
    return ProbabilityError(max(0.0, float(divergence * (total if literal else 1))), int(missing.sum()))

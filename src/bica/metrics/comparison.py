"""All that can be said of a found model beside the true one."""

from dataclasses import dataclass
from math import isfinite

from bica.metrics.columns import ColumnScore, column_score
from bica.metrics.matching import Match, match_columns
from bica.metrics.pairs import aligned
from bica.metrics.probability import ProbabilityError, transmission_probability_error
from bica.metrics.structure import in_degree_error, structure_error
from bica.model.or_mixture import OrMixture


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A found model against the true one: the measures of the paper, and the columns found exactly."""

    in_degree_error: int
    structure_error: int
    match: Match
    transmission_probability_error: ProbabilityError
    columns: ColumnScore

    @property
    def hamming_distance(self) -> float:
        """Share of wrong cells in the mixing, after matching."""
        return self.match.hamming_distance

    def as_dict(self) -> dict[str, float | None]:
        """Every measure by name, in plain values that JSON can hold: None where there is nothing finite to tell."""
        divergence = self.transmission_probability_error
        return {
            "n_found": self.columns.n_found,
            "n_true": self.columns.n_true,
            "n_exact": self.columns.n_exact,
            "precision": self.columns.precision,
            "recall": self.columns.recall,
            "f1": self.columns.f1,
            "mean_probability_error": self.columns.mean_probability_error,
            "max_probability_error": self.columns.max_probability_error,
            "hamming_distance": self.hamming_distance,
            "in_degree_error": self.in_degree_error,
            "structure_error": self.structure_error,
            "transmission_probability_error": divergence.value if isfinite(divergence.value) else None,
            "n_missing": divergence.n_missing,
        }


def compare_models(found: OrMixture, truth: OrMixture, n_samples: float | None = None) -> Comparison:
    """Measure how far ``found`` is from ``truth``, sensors matched by name.

    ``n_samples``, from which ``found`` was learned, puts a floor under probabilities that were not found; without it
    the transmission probability error is infinite as soon as a source is missing.

    >>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
    >>> comparison = compare_models(OrMixture([[1], [1]], [0.6]), truth, n_samples=100)
    >>> comparison.hamming_distance, comparison.columns.recall, comparison.match.order
    (0.25, 0.5, array([-1,  0]))
    """
    seen = aligned(found, truth)
    match = match_columns(seen.mixing, truth.mixing, seen.probability)
    return Comparison(
        in_degree_error=in_degree_error(seen.mixing, truth.mixing),
        structure_error=structure_error(seen.mixing, truth.mixing),
        match=match,
        transmission_probability_error=transmission_probability_error(
            match.probability, truth.probability, n_samples=n_samples
        ),
        columns=column_score(seen, truth),
    )

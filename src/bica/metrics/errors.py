"""How far structure, probabilities, activity and whole models are from the truth; and a gain that needs no truth."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, triu
from scipy.special import entr, rel_entr

from bica.errors import DataError, SettingError
from bica.metrics.matching import NONE, Match, aligned, binary_table, match_columns, mixing_pair, probabilities
from bica.model.identified import identified
from bica.model.or_mixture import OrMixture


def in_degree_error(found: ArrayLike, truth: ArrayLike) -> int:
    """By how much the number of sources that reach a sensor differs, summed over all sensors (the paper's E_d).

    All found sources count, without matching: |diag(G G') - diag(F F')| for the mixings G and F, summed.

    >>> in_degree_error([[1, 0, 1], [0, 1, 1]], [[1, 1], [0, 1]])  # the paper's two sensors, before pruning
    1
    """
    left, right = mixing_pair(found, truth)
    return int(np.abs(left.sum(axis=1) - right.sum(axis=1)).sum())


def structure_error(found: ArrayLike, truth: ArrayLike, *, diagonal: bool = False) -> int:
    """By how much the number of sources that two sensors share differs, summed over all pairs (the paper's E_s).

    All found sources count, without matching: |triu(G G') - triu(F F')| summed. ``diagonal`` adds the pairs of a
    sensor with itself, which is the in-degree error. Time grows with the pairs of sensors that share a source.

    >>> structure_error([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    1
    >>> structure_error([[1, 0], [0, 1]], [[1, 1], [0, 1]], diagonal=True)
    2
    """
    left, right = mixing_pair(found, truth)
    difference = _shared_sources(left) - _shared_sources(right)
    return int(abs(triu(difference, k=0 if diagonal else 1)).sum())


def _shared_sources(mixing: NDArray[np.bool_]) -> csr_array:
    links = csr_array(mixing.astype(np.int64))
    return links @ links.T


@dataclass(frozen=True, slots=True)
class ProbabilityError:
    """A divergence between probabilities, and for how many sources none was found."""

    value: float  # infinite if a source is missing and ``n_samples`` was not given
    n_missing: int  # sources whose found probability is 0, those without a match included


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


def activity_error_ratio(found: ArrayLike, truth: ArrayLike, match: Match) -> float:
    """Share of wrong cells in the decoded activity (the paper's activity error ratio).

    ``found`` is (n_samples, number of found sources), ``truth`` (n_samples, n_sources); ``match`` says which found
    source stands for which true one. A true source without one counts as silent in every row.

    >>> from bica.metrics import match_columns
    >>> match = match_columns([[1], [1]], [[1, 1], [0, 1]], [0.5])  # the source of the first sensor alone is missing
    >>> activity_error_ratio([[1], [0]], [[0, 1], [1, 0]], match)
    0.25
    """
    left = binary_table(found, "the found activity", DataError)
    right = binary_table(truth, "the true activity", DataError)
    if len(left) != len(right):
        raise DataError(f"the found activity has {len(left)} rows and the true one {len(right)}; give the same samples")
    if right.shape[1] != match.order.size or left.shape[1] <= match.order.max(initial=NONE):
        raise DataError("the activity has other sources than the match; give the activity of the models matched")
    matched = np.pad(left, ((0, 0), (0, 1)))[:, match.order]  # the extra column stands for sources without a match
    return float((matched != right).mean()) if right.size else 0.0


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """How many found columns equal a true one in every cell, and how far their probabilities are off."""

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
    left, right = _probability_by_column(aligned(found, truth)), _probability_by_column(truth)
    errors = [
        abs(ours - true)
        for column, probabilities in right.items()
        for ours, true in zip(left.get(column, ()), probabilities, strict=False)  # of lossy twins, as many as both have
    ]
    mean, worst = (float(np.mean(errors)), max(errors)) if errors else (None, None)
    return ColumnScore(found.n_sources, truth.n_sources, len(errors), mean, worst)


def _probability_by_column(model: OrMixture) -> dict[bytes, list[float]]:
    """The probabilities of the sources with each column, falling; only lossy twins are more than one."""
    found: dict[bytes, list[float]] = {}
    for column, probability in zip(model.columns, model.probability.tolist(), strict=True):
        found.setdefault(column.tobytes(), []).append(probability)
    return {column: sorted(probabilities, reverse=True) for column, probabilities in found.items()}


@dataclass(frozen=True, slots=True)
class EdgeScore:
    """How many edges of matched sources are true, and how far the reach of lossy ones is off."""

    n_found: int
    n_true: int
    n_right: int
    mean_reach_error: float | None  # mean |found - true| over right edges of sources that rows can identify
    max_reach_error: float | None  # both None if there are none

    @property
    def f1(self) -> float:
        """Harmonic mean of the shares of right edges among the found and among the true ones."""
        either = self.n_found + self.n_true
        return 2 * self.n_right / either if either else 1.0


def edge_score(found: OrMixture, truth: OrMixture) -> EdgeScore:
    """Compare the edges of matched sources, and how often they work.

    Reach is compared where the truth can be identified from rows (``bica.model.identified``): of a pair, for example,
    it cannot.

    >>> mixing = [[1], [1], [1], [1]]
    >>> found, truth = (OrMixture(mixing, [0.2], reach=q * np.array(mixing)) for q in (0.7, 0.8))
    >>> score = edge_score(found, truth)
    >>> score.f1, round(score.mean_reach_error, 3)
    (1.0, 0.1)
    """
    ordered = aligned(found, truth)
    match = match_columns(ordered.mixing, truth.mixing, ordered.probability)
    right = match.mixing & truth.mixing
    reach = np.pad(ordered.reach, ((0, 0), (0, 1)))[:, match.order]
    is_identified = identified([np.flatnonzero(column).tolist() for column in truth.mixing.T]).sources
    errors = np.abs(reach - truth.reach)[right & np.array(is_identified, dtype=bool)]
    mean, worst = (float(errors.mean()), float(errors.max())) if errors.size else (None, None)
    return EdgeScore(int(ordered.mixing.sum()), int(truth.mixing.sum()), int(right.sum()), mean, worst)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A found model against the true one: the measures of the paper, and the columns found exactly."""

    in_degree_error: int
    structure_error: int
    match: Match
    transmission_probability_error: ProbabilityError
    columns: ColumnScore
    edges: EdgeScore | None = None  # where edges may fail in either model

    @property
    def hamming_distance(self) -> float:
        """Share of wrong cells in the mixing, after matching."""
        return self.match.hamming_distance

    def as_dict(self) -> dict[str, float | None]:
        """Every measure by name, in plain values that JSON can hold; None where a measure has no finite value."""
        divergence, edges = self.transmission_probability_error, self.edges
        lossy: dict[str, float | None] = {}
        if edges is not None:
            lossy = {
                "edge_f1": edges.f1,
                "mean_reach_error": edges.mean_reach_error,
                "max_reach_error": edges.max_reach_error,
            }
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
            **lossy,
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
    ordered = aligned(found, truth)
    match = match_columns(ordered.mixing, truth.mixing, ordered.probability)
    return Comparison(
        in_degree_error=in_degree_error(ordered.mixing, truth.mixing),
        structure_error=structure_error(ordered.mixing, truth.mixing),
        match=match,
        transmission_probability_error=transmission_probability_error(
            match.probability, truth.probability, n_samples=n_samples
        ),
        columns=column_score(ordered, truth),
        edges=edge_score(ordered, truth) if found.has_lossy_edges or truth.has_lossy_edges else None,
    )


def information_gain(
    rows: ArrayLike, mixing: ArrayLike, activity: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The share of the entropy of a table that sources explain, less the entropy of the sources themselves.

    Without sources, every sensor has the entropy of its own mean. With them, it has one mean in the cells that are
    covered (a source is on that reaches the sensor) and one in the others, and each source has the entropy of its
    activity. The gain is the difference, relative to the former: 1 at most, and below 0 for sources that explain less
    than they cost, so that it can also choose their number. No truth is needed. 0 where no sensor varies.

    A. A. Frolov, D. Húsek, P. Y. Polyakov: Comparison of seven methods for Boolean factor analysis and their evaluation
    by information gain, IEEE TNNLS 27, 2016.

    >>> rows = [[1, 1, 1, 0]] * 5 + [[0, 0, 0, 0]] * 5
    >>> round(information_gain(rows, [[1], [1], [1], [0]], [[1]] * 5 + [[0]] * 5), 3)  # one coin toss instead of three
    0.667
    """
    table, links = binary_table(rows, "the table", DataError), binary_table(mixing, "the mixing", DataError)
    on = binary_table(activity, "the activity", DataError)
    if (len(on), len(links)) != table.shape or on.shape[1] != links.shape[1]:
        raise DataError(
            f"a table of shape {table.shape}, a mixing of shape {links.shape} and an activity of shape {on.shape} do "
            "not belong together"
        )
    weights = np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    covered = on @ links.T
    alone = _entropy(weights @ table, weights.sum())
    explained = sum(_entropy(weights @ (table & part), weights @ part) for part in (covered, ~covered))
    cost = _entropy(weights @ on, weights.sum())
    return float((alone - explained - cost) / alone) if alone > 0 else 0.0


def _entropy(ones: NDArray[np.float64], total: NDArray[np.float64] | float) -> float:
    """The entropy of cells of which so many, in all, are 1: in nats, each column with its own mean."""
    share = np.divide(ones, total, out=np.zeros_like(ones), where=np.broadcast_to(total, ones.shape) > 0)
    return float((total * (entr(share) + entr(1 - np.minimum(share, 1.0)))).sum())

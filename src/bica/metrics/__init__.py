"""How far an answer is from the truth; the found side always comes first.

>>> from bica.model.or_mixture import OrMixture
>>> truth = OrMixture([[1, 1], [0, 1]], [0.2, 0.5])
>>> compare_models(truth, truth).columns.f1
1.0
"""

from bica.metrics.errors import (
    ColumnScore,
    Comparison,
    EdgeScore,
    ProbabilityError,
    activity_error_ratio,
    column_score,
    compare_models,
    edge_score,
    in_degree_error,
    information_gain,
    structure_error,
    transmission_probability_error,
)
from bica.metrics.matching import Match, hamming_distance, match_by_program, match_columns, match_greedily

__all__ = [
    "ColumnScore",
    "Comparison",
    "EdgeScore",
    "Match",
    "ProbabilityError",
    "activity_error_ratio",
    "column_score",
    "compare_models",
    "edge_score",
    "hamming_distance",
    "in_degree_error",
    "information_gain",
    "match_by_program",
    "match_columns",
    "match_greedily",
    "structure_error",
    "transmission_probability_error",
]

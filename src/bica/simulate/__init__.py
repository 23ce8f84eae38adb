"""Problems with known answers: networks, activity over time, and the rows that sensors show of them.

>>> import numpy as np
>>> problem = simulate(topology("one"), 100, np.random.default_rng(7))
>>> problem.activity.shape, problem.rows.shape
((100, 6), (100, 10))
"""

from bica.simulate.problem import (
    EVALUATION,
    TOPOLOGIES,
    Evaluation,
    Problem,
    bars,
    markov_activity,
    random_network,
    simulate,
    topology,
    with_lossy_edges,
)

__all__ = [
    "EVALUATION",
    "TOPOLOGIES",
    "Evaluation",
    "Problem",
    "bars",
    "markov_activity",
    "random_network",
    "simulate",
    "topology",
    "with_lossy_edges",
]

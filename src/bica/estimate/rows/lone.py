"""Sources of one sensor, from counts: decoding never finds one that is rarer than the noise."""

from __future__ import annotations

import numpy as np

from bica.estimate.rows.explained import Explained
from bica.estimate.rows.pool import Forbidden, Pool, as_columns


def lone_sources(state: Explained, least: float, forbidden: Forbidden | None = None) -> Pool:
    """A source for every sensor that is on, where nothing reaches it, clearly more often than false alarms explain."""
    table, evidence, covered = state.table, state.evidence, state.coverage()
    free = np.maximum(table.times_seen() - covered.ones - covered.zeros, 0.0)
    ones, expected = table.ones() - covered.ones, free * evidence.false_alarm
    z = (ones - expected) / np.sqrt(np.maximum(expected * (1 - evidence.false_alarm), 0.1))
    clear = 0.5 * z**2 > 2 * np.log(table.n_sensors) + 0.5 * np.log(table.n_samples)
    have = set(as_columns(state.pool.columns))
    new = [
        i
        for i in np.flatnonzero((z > 0) & clear & (ones - expected >= least)).tolist()
        if (i,) not in have and not (forbidden and forbidden((i,)))
    ]
    rate = ones[new] / np.maximum(free[new], 1.0)
    chances = (rate - evidence.false_alarm[new]) / (1 - evidence.false_alarm[new] - evidence.miss[new])
    return Pool.of([(i,) for i in new], np.clip(chances, 1e-6, 0.999).tolist())

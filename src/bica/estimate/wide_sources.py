"""Sources too wide for any block, found in the rows beside those that the blocks have found."""

from __future__ import annotations

import numpy as np

from bica.estimate.block_learning import BlockLearner
from bica.estimate.block_rounds import FlipRate, Round
from bica.estimate.pool import Column, Estimate, Pool
from bica.estimate.rows.pool import Pool as RowPool
from bica.estimate.rows.pool import as_lists
from bica.estimate.rows.rounds import RowFit, RowSettings, row_rounds
from bica.estimate.rows.table import RowTable
from bica.model.noise import Noise


def wide_sources(learner: BlockLearner, now: Round, rng: np.random.Generator, n_jobs: int) -> Round:
    """Rounds on the rows from the present pool on; Ctrl-C keeps the best so far."""
    noise = now.noise if now.flip_rate is None else now.flip_rate.rate

    def forbidden(column: Column) -> bool:
        return any(together <= set(column) for together in learner.forbidden)

    settings = RowSettings(forbidden=forbidden if learner.forbidden else None, n_jobs=n_jobs)
    found = row_rounds(RowTable.of(learner.data), row_pool(learner, now.pool), noise, rng, settings)
    return Round(
        _pool_of(found), *_noise_of(found, now, learner), settled=found.converged, interrupted=found.interrupted
    )


def row_pool(learner: BlockLearner, pool: Pool) -> RowPool:
    """The known sources, then the others, as the rounds on rows want them."""
    known = learner.known.sources
    sources = {column: pool.sources.get(column, given) for column, given in known.items()}
    sources |= pool.sources
    rate = np.array([estimate.rate for estimate in sources.values()], float)
    fixed = np.arange(rate.size) < len(known)
    held = np.array([column in learner.fixed for column in sources], dtype=bool)
    return RowPool(as_lists(sources), -np.expm1(-rate), fixed, held)


def _pool_of(found: RowFit) -> Pool:
    rates = -np.log1p(-found.probability)
    errors = found.probability_error / (1.0 - found.probability)
    numbers = zip(found.columns, rates.tolist(), errors.tolist(), strict=True)
    return Pool({column: Estimate(rate, error) for column, rate, error in sorted(numbers)})


def _noise_of(found: RowFit, now: Round, learner: BlockLearner) -> tuple[Noise, FlipRate | None]:
    """The rate of the covered cells, as sure as if each of them had been looked at."""
    if now.flip_rate is None:
        return now.noise, None
    rate = max(found.flip_rate, now.flip_rate.lowest)
    n_cells = learner.data.n_samples * learner.data.n_sensors
    return Noise.flips(rate), FlipRate(rate, float(np.sqrt(rate * (1.0 - rate) / n_cells)), now.flip_rate.lowest)

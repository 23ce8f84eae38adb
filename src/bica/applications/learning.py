"""The users of every channel, learned from what the sniffers showed there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bica.applications.monitoring import MonitoringProblem
from bica.data.patterns import PatternCounts
from bica.methods import method_named
from bica.model.fit import Fit, Method
from bica.model.or_mixture import OrMixture
from bica.progress import tracked


@dataclass(frozen=True, slots=True, eq=False)
class LearnedChannels:
    """One fit a channel, and how often each sniffer was on there."""

    fits: Mapping[str, Fit]
    busy: Mapping[str, Mapping[str, float]]  # by channel and sniffer

    def problem(self, sniffers: list[str] | None = None) -> MonitoringProblem:
        """The monitoring problem with what was learned; the naive rule Max sees what was measured."""
        return MonitoringProblem.of({name: fit.model for name, fit in self.fits.items()}, sniffers, self.busy)


def learn_channels(
    tables: Mapping[str, Any], method: Method | None = None, rng: np.random.Generator | None = None
) -> LearnedChannels:
    """Learn the users behind every channel's table of slots: anything that ``BICA`` takes, as ``bica slots`` writes it.

    A channel on which nothing was ever heard has no users. The time is that of one fit a channel.

    >>> quiet, rows = [[0, 0]] * 10, [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50
    >>> learned = learn_channels({"1": quiet, "6": rows})
    >>> [fit.model.n_sources for fit in learned.fits.values()], learned.busy["6"]
    ([0, 2], {'x0': 0.6, 'x1': 0.5})
    """
    learner, chance = method or method_named("likelihood"), rng or np.random.default_rng(0)
    fits, busy = {}, {}
    for channel, table in tracked(tables.items(), "learning the channels", len(tables)):
        counts = PatternCounts.of(table)
        fits[channel] = _fit(learner, counts, chance)
        if "interrupted" in fits[channel].diagnostics:  # half-learned users would make a plan that looks sound
            raise KeyboardInterrupt(f"while learning channel {channel}")
        share = counts.ones() / np.maximum(counts.times_seen(), 1.0)
        busy[channel] = dict(zip(counts.sensors, share.tolist(), strict=True))
    return LearnedChannels(fits, busy)


def _fit(learner: Method, counts: PatternCounts, rng: np.random.Generator) -> Fit:
    if not counts.patterns.any():
        return Fit(OrMixture(np.zeros((counts.n_sensors, 0), bool), [], sensors=counts.sensors))
    return learner.fit(counts, rng)

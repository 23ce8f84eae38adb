"""Monitoring as a problem: users on channels, known or learned, and sniffers that watch one channel each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.data.patterns import PatternCounts
from bica.errors import DataError, ModelError
from bica.methods import method_named
from bica.model.fit import Fit, Method
from bica.model.noise import as_probabilities
from bica.model.or_mixture import OrMixture
from bica.progress import tracked
from bica.text import as_distinct_names


@dataclass(frozen=True, slots=True, eq=False)
class MonitoringProblem:
    """Which users are active on which channel and how often, and which sniffers could hear them.

    >>> one, six = OrMixture([[1, 0], [1, 1]], [0.3, 0.2]), OrMixture([[1], [0]], [0.4])
    >>> problem = MonitoringProblem.of({"1": one, "6": six})
    >>> problem.n_users, problem.value([1, 0])  # the first sniffer on channel "6", the second on "1"
    (3, 0.9)
    >>> MonitoringProblem([[0.5], [0.5]], [0], [0.4]).monitored_share([0, 0])  # two that miss every second time
    array([0.75])
    """

    sniffers: tuple[str, ...]
    channels: tuple[str, ...]
    users: tuple[str, ...]
    reach: NDArray[np.float64]  # (n_sniffers, n_users), how often a sniffer hears the user, if that is active
    channel: NDArray[np.int64]  # (n_users,), the place of each user's channel
    probability: NDArray[np.float64]  # (n_users,), how often each user is active
    busy: NDArray[np.float64]  # (n_sniffers, n_channels), how often a sniffer would hear something on a channel

    def __init__(
        self,
        reach: ArrayLike,
        channel: ArrayLike,
        probability: ArrayLike,
        *,
        sniffers: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        users: Sequence[str] | None = None,
        busy: ArrayLike | None = None,
    ) -> None:
        reached, probabilities = as_probabilities(reach, "reach"), as_probabilities(probability, "probability")
        places = np.array(channel, np.int64).reshape(-1)
        n_channels = int(places.max(initial=-1)) + 1 if channels is None else len(channels)
        _check_shapes(reached, places, probabilities, n_channels)
        heard = heard_share(reached, places, probabilities, n_channels) if busy is None else np.array(busy, np.float64)
        if heard.shape != (reached.shape[0], n_channels):
            raise ModelError(
                f"busy has shape {heard.shape}, but there are {reached.shape[0]} sniffers, {n_channels} channels"
            )
        names = (
            _named(sniffers, "sniffer", reached.shape[0]),
            _named(channels, "channel", n_channels),
            _named(users, "user", reached.shape[1]),
        )
        for array in (reached, places, probabilities, heard):
            array.flags.writeable = False
        for field, value in zip(self.__slots__, (*names, reached, places, probabilities, heard), strict=True):
            object.__setattr__(self, field, value)

    @staticmethod
    def of(
        models: Mapping[str, OrMixture],
        sniffers: Sequence[str] | None = None,
        busy: Mapping[str, Mapping[str, float]] | None = None,
    ) -> MonitoringProblem:
        """The problem behind one model per channel, whose sensors are the sniffers and whose sources are the users.

        A sniffer that a model does not know hears nothing on that channel; one with a lossy edge hears its user at
        times. ``sniffers`` are the available ones, all by default; users whom none of them reaches stay in the problem
        and count as missed. ``busy`` is how often each sniffer was on, by channel and name, where that was measured.
        """
        known = list(dict.fromkeys(name for model in models.values() for name in model.sensors))
        chosen = known if sniffers is None else list(sniffers)
        for name in chosen:
            if name not in known:
                raise DataError(f"no channel knows a sniffer {name!r}; there are {', '.join(known) or 'none'}")
        reach = [_reach(model, chosen) for model in models.values()]
        heard = None
        if busy is not None:
            heard = np.array([[busy[channel].get(name, 0.0) for channel in models] for name in chosen])
        several = len(models) > 1
        return MonitoringProblem(
            np.hstack([np.zeros((len(chosen), 0)), *reach]),
            np.repeat(np.arange(len(models)), [model.n_sources for model in models.values()]),
            np.concatenate([np.zeros(0), *(model.probability for model in models.values())]),
            sniffers=chosen,
            channels=list(models),
            users=[f"{c}: {u}" if several else u for c, model in models.items() for u in model.source_names()],
            busy=None if heard is None else heard.reshape(len(chosen), len(models)),
        )

    @property
    def n_sniffers(self) -> int:
        """How many sniffers there are."""
        return len(self.sniffers)

    @property
    def n_channels(self) -> int:
        """How many channels there are."""
        return len(self.channels)

    @property
    def n_users(self) -> int:
        """How many users there are, including those whom no sniffer reaches."""
        return len(self.users)

    def monitored(self, assignment: ArrayLike) -> NDArray[np.bool_]:
        """Which users are monitored when sniffer s watches channel ``assignment[s]``, or none if that is -1."""
        monitored: NDArray[np.bool_] = self.monitored_share(assignment) > 0
        return monitored

    def monitored_share(self, assignment: ArrayLike) -> NDArray[np.float64]:
        """How much of each user's activity at least one sniffer hears that watches its channel."""
        watched = np.asarray(assignment, np.int64)
        if watched.shape != (self.n_sniffers,):
            raise ModelError(f"there are {self.n_sniffers} sniffers, but the assignment has shape {watched.shape}")
        share: NDArray[np.float64] = 1.0 - np.prod(1.0 - self.reach * (watched[:, None] == self.channel), axis=0)
        return share

    def value(self, assignment: ArrayLike) -> float:
        """The expected number of active users that are monitored."""
        return float((self.probability * self.monitored_share(assignment)).sum())


def heard_share(
    reach: NDArray[np.float64], channel: NDArray[np.int64], probability: NDArray[np.float64], n_channels: int
) -> NDArray[np.float64]:
    """How often each sniffer would hear something on each channel: (n_sniffers, n_channels)."""
    on_channel = channel == np.arange(n_channels)[:, None]
    with np.errstate(divide="ignore"):
        silence = np.log1p(-probability * reach)  # minus infinity for a user who is always heard
    quiet = [np.where(users, silence, 0.0).sum(axis=1) for users in on_channel]
    share: NDArray[np.float64] = -np.expm1(np.array(quiet).reshape(n_channels, len(reach)).T)
    return share


def _reach(model: OrMixture, sniffers: list[str]) -> NDArray[np.float64]:
    place = {name: i for i, name in enumerate(model.sensors)}
    nothing = np.zeros(model.n_sources)
    rows = [model.reach[place[name]] if name in place else nothing for name in sniffers]
    return np.array(rows, np.float64).reshape(len(sniffers), model.n_sources)


def _check_shapes(
    reach: NDArray[np.float64], channel: NDArray[np.int64], probability: NDArray[np.float64], n_channels: int
) -> None:
    if reach.ndim != 2:
        raise ModelError(f"reach needs two dimensions, but has {reach.ndim}")
    n_users = reach.shape[1]
    if channel.shape != (n_users,) or probability.shape != (n_users,):
        raise ModelError(
            f"reach has {n_users} columns, but there are {channel.size} channels of users "
            f"and {probability.size} probabilities"
        )
    if n_users and not (channel.min() >= 0 and channel.max() < n_channels):
        raise ModelError(f"the channel of a user is a number from 0 to {n_channels - 1}")


def _named(names: Sequence[str] | None, what: str, n_names: int) -> tuple[str, ...]:
    given = tuple(f"{what}{i + 1}" for i in range(n_names)) if names is None else as_distinct_names(names, f"a {what}")
    if len(given) != n_names:
        raise ModelError(f"there are {n_names} {what}s, but {len(given)} names")
    return given


@dataclass(frozen=True, slots=True, eq=False)
class LearnedChannels:
    """One fit per channel, and how often each sniffer was on there."""

    fits: Mapping[str, Fit]
    busy: Mapping[str, Mapping[str, float]]  # by channel and sniffer

    def problem(self, sniffers: list[str] | None = None) -> MonitoringProblem:
        """The monitoring problem with the learned users; the naive rule Max uses what was measured."""
        return MonitoringProblem.of({name: fit.model for name, fit in self.fits.items()}, sniffers, self.busy)


def learn_channels(
    tables: Mapping[str, Any], method: Method | None = None, rng: np.random.Generator | None = None
) -> LearnedChannels:
    """Learn the users behind each channel's table of slots: anything that ``BICA`` takes, as ``bica slots`` writes it.

    A channel on which nothing was ever heard has no users. It takes the time of one fit per channel.

    >>> quiet, rows = [[0, 0]] * 10, [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50
    >>> learned = learn_channels({"1": quiet, "6": rows})
    >>> [fit.model.n_sources for fit in learned.fits.values()], learned.busy["6"]
    ([0, 2], {'x0': 0.6, 'x1': 0.5})
    """
    learner, generator = method or method_named("likelihood"), rng or np.random.default_rng(0)
    fits, busy = {}, {}
    for channel, table in tracked(tables.items(), "learning the channels", len(tables)):
        counts = PatternCounts.of(table)
        fits[channel] = _fit(learner, counts, generator)
        if "interrupted" in fits[channel].diagnostics:  # half-learned users would make a plan that looks sound
            raise KeyboardInterrupt(f"while learning channel {channel}")
        share = counts.ones() / np.maximum(counts.times_observed(), 1.0)
        busy[channel] = dict(zip(counts.sensors, share.tolist(), strict=True))
    return LearnedChannels(fits, busy)


def _fit(learner: Method, counts: PatternCounts, rng: np.random.Generator) -> Fit:
    if not counts.patterns.any():
        return Fit(OrMixture.without_sources(counts.sensors))
    return learner.fit(counts, rng)

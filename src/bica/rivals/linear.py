"""Binary sources that add up in measurements (Diamantaras and Papadimitriou 2006; Li, Cichocki and Zhang 2003)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bica.data.patterns import PatternCounts
from bica.errors import DataError, LimitError, MisfitWarning, SettingError
from bica.model.fit import Fit
from bica.rivals.counted import Attempt, NoiseSetting, check_noise, fit_best_start, nothing_found, required_n_sources

# x_t = A y_t + b + Gaussian noise, y binary. Over the 2^n states S, with S1 = (S, 1):
#
#     E:  gamma_ts  prop. to  exp(-|x_t - A s - b|^2 / 2 sd^2) prod_j p_j^s_j (1 - p_j)^(1 - s_j)
#     M:  (A b) = (sum_t x_t E[S1_t]') (sum_t E[S1_t S1_t'])^-1,   p = mean E[S],   sd^2 = mean squared residual
#
# A random start uses a larger sd first and lowers it step by step, or it would settle where one state takes two sums.
# Where states lie apart, the gaps between the rows give a start that is nearly right.
# Unidentified: the order of the sources, and (a_j, y_j) against (-a_j, 1 - y_j) with b moved by a_j; here the largest
# amplitude of every source is positive.

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]
MOST_SOURCES = 12  # 2^12 states in every step
MOST_SHARES = 1 << 26  # rows times states: half a gigabyte, some of which are held at once
COOLING = 0.9  # factor of the assumed deviation from step to step
FIRST_SHARE = 0.5  # of the total deviation, assumed in the first step
LEAST_DEVIATION = 1e-6  # as a share of the total deviation
LEAST_PROBABILITY = 1e-4
RIDGE = 1e-9  # keeps sources that are always or never on solvable
N_DIRECTIONS = 4  # on which rows of several channels are projected for a start by gaps
MOST_TAPS = 6  # that are tried where their number is not told
EXACT = 1e-6  # share of the range within which two sums are the same


@dataclass(frozen=True, slots=True)
class LinearMixture:
    """Measurements as sums: ``measurements = activity @ amplitude.T + offset``, with Gaussian noise."""

    amplitude: Floats  # (n_channels, n_sources)
    offset: Floats  # (n_channels,)
    probability: Floats  # (n_sources,)
    deviation: float  # of the noise
    activity: Bits  # (n_samples, n_sources), the likeliest states
    log_likelihood: float
    n_iter: int
    converged: bool

    def in_order(self) -> LinearMixture:
        """The same sums with the largest amplitude of every source positive, and strong sources before weak ones."""
        largest = np.abs(self.amplitude).argmax(axis=0)
        negative = self.amplitude[largest, np.arange(self.amplitude.shape[1])] < 0
        order = np.argsort(-np.linalg.norm(self.amplitude, axis=0), kind="stable")
        return replace(
            self,
            amplitude=np.where(negative, -self.amplitude, self.amplitude)[:, order],
            offset=self.offset + self.amplitude[:, negative].sum(axis=1),
            probability=np.where(negative, 1 - self.probability, self.probability)[order],
            activity=(self.activity ^ negative)[:, order],
        )


@dataclass(frozen=True, kw_only=True)
class LinearSums:
    """Binary sources whose amplitudes add up in real measurements; there may be more sources than channels.

    Use ``unmix`` where measurements are sums of levels: currents of appliances on one meter, received power of several
    senders; ``deconvolve`` for one binary signal that arrives over several delays. Up to 12 sources; time of a step:
    rows times 2^n_sources. ``fit`` accepts tables of zeros and ones for comparison only: there the sum of two sources
    is not 2 but 1, so the model does not apply. It warns of that and reports how much of the table it leaves over.

    Y. Li, A. Cichocki, L. Zhang: Blind separation and extraction of binary sources, IEICE Trans. 2003.
    K. Diamantaras, T. Papadimitriou: Blind deconvolution of multi-input single-output systems with binary sources,
    IEEE Trans. Signal Processing 2006.

    >>> rng = np.random.default_rng(0)
    >>> measured = (rng.random((500, 3)) < 0.5) @ [3.0, 1.1, 0.4] + rng.normal(7, 0.01, 500)
    >>> LinearSums(n_sources=3).unmix(measured, rng).amplitude.round(2)
    array([[3. , 1.1, 0.4]])
    """

    n_sources: int | None = None  # must be given
    n_init: int = 12
    max_iter: int = 300
    tolerance: float = 1e-8  # relative change of the log-likelihood that ends a start
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "linear sums")
        if self.max_iter < 1 or self.n_init < 1:
            raise SettingError("max_iter and n_init count from 1 up")

    def unmix(self, measurements: ArrayLike, rng: np.random.Generator) -> LinearMixture:
        """The sources behind ``measurements``, (n_samples,) or (n_samples, n_channels)."""
        values = _measured(measurements)
        n_sources = self._checked_n_sources()
        exact = peeled(values, n_sources)
        if exact is not None:
            return exact
        if len(values) << n_sources > MOST_SHARES:
            raise LimitError(
                f"{n_sources} sources have 2^{n_sources} states in each of {len(values)} rows, more than memory should "
                f"hold; give up to {MOST_SHARES >> n_sources} rows"
            )
        weights = np.ones(len(values))
        starts = [_at_random(values, weights, n_sources, stream) for stream in rng.spawn(self.n_init)]
        directions = rng.normal(size=(N_DIRECTIONS if values.shape[1] > 1 else 1, values.shape[1]))
        starts += [start for d in directions if (start := _by_gaps(values, values @ d, n_sources)) is not None]
        return max((self._climb(values, weights, start) for start in starts), key=lambda m: m.log_likelihood).in_order()

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from zeros and ones, beyond this model; ``diagnostics["unexplained"]`` is what is left over."""
        data = data.complete("linear sums")
        n_sources = self._checked_n_sources()
        if not data.ones().any():
            return nothing_found("linear", data, self.noise)
        values = data.rows().astype(float)

        def start(_: int, stream: np.random.Generator) -> Attempt:
            found = self._climb(values, data.weights, _at_random(values, data.weights, n_sources, stream)).in_order()
            links = found.amplitude >= np.maximum(found.amplitude.max(axis=0) / 2, LEAST_DEVIATION)
            left_over = found.deviation**2 / max(_variance(values, data.weights), LEAST_DEVIATION)
            trace = {"objective": [-found.log_likelihood], "unexplained": left_over}
            return Attempt(links, found.activity, self.noise, -found.log_likelihood, trace, found.converged)

        fit = fit_best_start("linear", data, start, self.n_init, rng)
        warnings.warn(
            "sums of levels do not describe a table of zeros and ones, in which two sources on one sensor show 1: "
            f"{fit.diagnostics['unexplained']:.0%} of its variance is left over; use method 'likelihood'",
            MisfitWarning,
            stacklevel=2,
        )
        return fit

    def _checked_n_sources(self) -> int:
        n_sources = required_n_sources(self.n_sources, "linear sums")
        if n_sources > MOST_SOURCES:
            raise LimitError(
                f"linear sums of {n_sources} sources have 2^{n_sources} states; "
                f"give n_sources of at most {MOST_SOURCES}"
            )
        return n_sources

    def _climb(self, values: Floats, weights: Floats, state: SumState) -> LinearMixture:
        """Expectation and maximisation from one start."""
        total = np.sqrt(_variance(values, weights)) or 1.0
        assumed, before, converged, n_iter = state.deviation, -np.inf, False, 0
        while n_iter < self.max_iter and not converged:
            share, fit = state.responsibility(values, max(assumed, state.deviation))
            now = float(weights @ fit)
            settled = assumed <= state.deviation
            state = state.improved(values, weights, share, LEAST_DEVIATION * total)
            converged = settled and abs(now - before) <= self.tolerance * abs(now)
            assumed, before, n_iter = assumed * COOLING, now, n_iter + 1
        share, fit = state.responsibility(values, state.deviation)
        activity = _states(len(state.probability))[share.argmax(axis=1)].astype(bool)
        return LinearMixture(*state.numbers(), activity, float(weights @ fit), n_iter, converged)


@dataclass(frozen=True, slots=True)
class SumState:
    """The numbers of a linear mixture on their way up."""

    amplitude: Floats
    offset: Floats
    probability: Floats
    deviation: float

    def numbers(self) -> tuple[Floats, Floats, Floats, float]:
        """All four, in the order of ``LinearMixture``."""
        return self.amplitude, self.offset, self.probability, self.deviation

    def responsibility(self, values: Floats, deviation: float) -> tuple[Floats, Floats]:
        """The probability of every state given each row, (n_rows, 2^n_sources), and each row's log-likelihood."""
        states = _states(len(self.probability))
        log_prior = states @ np.log(self.probability) + (1 - states) @ np.log1p(-self.probability)
        log_joint = log_prior - _squares(values, states @ self.amplitude.T + self.offset) / (2 * deviation**2)
        fit = logsumexp(log_joint, axis=1)
        return np.exp(log_joint - fit[:, None]), fit - values.shape[1] * np.log(deviation * np.sqrt(2 * np.pi))

    def improved(self, values: Floats, weights: Floats, share: Floats, least: float) -> SumState:
        """The numbers that fit best to these probabilities of states; the deviation is at least ``least``."""
        states = np.c_[_states(len(self.probability)), np.ones(share.shape[1])]
        times = weights @ share
        square = states.T @ (times[:, None] * states) + RIDGE * times.sum() * np.eye(states.shape[1])
        solution = np.linalg.solve(square, (share @ states).T @ (weights[:, None] * values)).T
        residual = (weights[:, None] * share * _squares(values, states @ solution.T)).sum()
        return SumState(
            solution[:, :-1],
            solution[:, -1],
            np.clip(times @ states[:, :-1] / times.sum(), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY),
            max(float(np.sqrt(residual / (times.sum() * values.shape[1]))), least),
        )


def _at_random(values: Floats, weights: Floats, n_sources: int, rng: np.random.Generator) -> SumState:
    """A start from differences between rows drawn at random."""
    ends = rng.integers(len(values), size=(2, n_sources))
    amplitude = np.abs(values[ends[0]] - values[ends[1]]).T
    deviation = FIRST_SHARE * (np.sqrt(_variance(values, weights)) or 1.0)
    return SumState(amplitude, values.min(axis=0), np.full(n_sources, 0.5), deviation)


def _by_gaps(values: Floats, projected: Floats, n_sources: int) -> SumState | None:
    """A start from the sums themselves: rows are cut at the widest gaps between them, and what is left is peeled."""
    order = np.argsort(projected)
    if len(order) < 2**n_sources:
        return None
    cuts = np.sort(np.argsort(np.diff(projected[order]))[len(order) - 2**n_sources :]) + 1
    parts = np.split(order, cuts)
    sums = np.array([values[part].mean(axis=0) for part in parts])
    bits = _peeled_bits(np.array([projected[part].mean() for part in parts]), n_sources, slack=np.inf)
    assert bits is not None
    solution = np.linalg.lstsq(np.c_[bits, np.ones(len(bits))], sums, rcond=None)[0].T
    within = np.concatenate([values[part] - mean for part, mean in zip(parts, sums, strict=True)])
    beside = sums - np.c_[bits, np.ones(len(bits))] @ solution.T
    deviation = np.sqrt((within**2).mean()) + np.sqrt((beside**2).mean()) or 1.0
    return SumState(solution[:, :-1], solution[:, -1], np.full(n_sources, 0.5), deviation)


def peeled(values: Floats, n_sources: int) -> LinearMixture | None:
    """The mixture behind noise-free measurements in which every state occurs; None where that is not so.

    The gap between the two lowest sums is the smallest amplitude. Pairing every sum with the one that lies this gap
    above it, and keeping the lower of each pair, leaves one source less; so n rounds find everything.

    >>> found = peeled(np.array([[0.0], [1.0], [2.5], [3.5]]), 2)
    >>> found.amplitude
    array([[2.5, 1. ]])
    """
    sums, place = np.unique(values, axis=0, return_inverse=True)
    if len(sums) != 2**n_sources:
        return None
    projected = sums @ np.random.default_rng(0).normal(size=sums.shape[1])
    bits = _peeled_bits(projected, n_sources, slack=EXACT * np.ptp(projected))
    if bits is None:
        return None
    solution: Floats = np.linalg.lstsq(np.c_[bits, np.ones(len(bits))], sums, rcond=None)[0].T.astype(np.float64)
    if not np.allclose(np.c_[bits, np.ones(len(bits))] @ solution.T, sums, rtol=0, atol=EXACT * np.ptp(sums)):
        return None
    activity = bits[place.ravel()].astype(bool)
    amplitude, offset = solution[:, :-1], solution[:, -1]
    return LinearMixture(amplitude, offset, activity.mean(axis=0), 0.0, activity, np.inf, n_sources, True).in_order()


def _peeled_bits(sums: Floats, n_sources: int, slack: float) -> Floats | None:
    """The state behind each of 2^n_sources projected sums, or None where they do not pair."""
    left = np.argsort(sums)
    mates = []  # of every round: the lower ones and what lies one amplitude above each
    for _ in range(n_sources):
        pairs = _paired(sums, left, slack)
        if pairs is None:
            return None
        mates.append(pairs)
        left = pairs[0]
    bits = np.zeros((len(sums), n_sources))
    for source in reversed(range(n_sources)):
        lower, upper = mates[source]
        bits[upper] = bits[lower]
        bits[upper, source] = 1
    return bits


def _paired(sums: Floats, left: NDArray[np.int64], slack: float) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    gap = sums[left[1]] - sums[left[0]]
    lower, upper, free = [], [], list(left)
    while free:
        first = free.pop(0)
        distance = np.abs(sums[free] - sums[first] - gap) if free else np.array([np.inf])
        if distance.min() > slack:
            return None
        lower.append(first)
        upper.append(free.pop(int(distance.argmin())))
    return np.array(lower), np.array(upper)


@dataclass(frozen=True, slots=True)
class Deconvolution:
    """A binary signal that arrived over several delays: ``signal[t] = sum_l tap[l] * source[t - l] + offset``."""

    tap: Floats  # (n_taps,)
    offset: float
    source: Bits  # (n_samples,); what came before the first sample counts as off


def deconvolve(signal: ArrayLike, n_taps: int | None, rng: np.random.Generator) -> Deconvolution:
    """The binary source behind one measured signal, up to a delay and to (tap, source) against (-tap, not source).

    The last ``n_taps`` values of the source act as sources of a linear mixture; their decoded streams are each other,
    delayed, which puts them in order. The likeliest sequence then comes from Viterbi's algorithm. With None, the number
    of taps, up to 6, grows as long as that lowers the Bayesian information criterion of the mixture.
    """
    values = _measured(signal)
    if values.shape[1] != 1 or not 0 < (MOST_TAPS if n_taps is None else n_taps) < len(values):
        raise SettingError("give one signal and fewer taps than samples")
    mixture = LinearSums(n_sources=n_taps or 1).unmix(values, rng)
    while n_taps is None and len(mixture.probability) < MOST_TAPS:
        longer = LinearSums(n_sources=len(mixture.probability) + 1).unmix(values, rng)
        if _criterion(longer, len(values)) >= _criterion(mixture, len(values)):
            break
        mixture = longer
    n_taps = len(mixture.probability)
    streams = np.where(mixture.activity, 1.0, -1.0)
    best, tap = -np.inf, mixture.amplitude[0]
    for newest in range(n_taps):
        agreement, taps = _by_delay(streams, mixture.amplitude[0], newest)
        if agreement > best:
            best, tap = agreement, taps
    # turning a stream round moves its amplitude into the offset: sum of turned (negative) taps
    offset = float(mixture.offset[0] + mixture.amplitude[0].sum() / 2 - tap.sum() / 2)
    return Deconvolution(tap, offset, _viterbi(values[:, 0], tap, offset))


def _criterion(mixture: LinearMixture, n_samples: int) -> float:
    """Bayes' criterion: an amplitude and a probability for each source, an offset and a deviation."""
    return float((2 * len(mixture.probability) + 2) * np.log(n_samples) - 2 * mixture.log_likelihood)


def _by_delay(streams: Floats, amplitude: Floats, newest: int) -> tuple[float, Floats]:
    """The taps in order of delay if stream ``newest`` is the source itself, and how well the others are it, delayed."""
    n_samples, n_taps = streams.shape
    delayed = np.stack([streams[n_taps - lag : n_samples - lag, newest] for lag in range(n_taps)])
    match = delayed @ streams[n_taps:] / (n_samples - n_taps)  # (delay, stream)
    taken: list[int] = []
    for lag in range(n_taps):
        strength = np.abs(match[lag])
        strength[taken] = -1
        taken.append(int(strength.argmax()) if lag else newest)
    chosen = match[np.arange(n_taps), taken]
    return float(np.abs(chosen).sum()), np.sign(chosen) * amplitude[taken]


def _viterbi(signal: Floats, tap: Floats, offset: float) -> Bits:
    """The sequence with the least squared error; states are the last ``len(tap) - 1`` values, the newest in bit 0."""
    n_states = 2 ** (len(tap) - 1)
    last = _states(len(tap))  # bit 0 is the value of now, the others are the state before
    sums = last @ tap + offset
    before, after = np.arange(2 * n_states) >> 1, np.arange(2 * n_states) % n_states
    cost = np.where(np.arange(n_states) == 0, 0.0, np.inf)
    back = np.zeros((len(signal), n_states), np.int64)
    for t, value in enumerate(signal):
        total = cost[before] + (value - sums) ** 2
        order = np.argsort(-total, kind="stable")  # of several ways into a state the cheapest is written last
        back[t, after[order]] = order
        cost = np.full(n_states, np.inf)
        cost[after[order]] = total[order]
    path = np.zeros(len(signal), bool)
    state = int(cost.argmin())
    for t in reversed(range(len(signal))):
        came = back[t, state]
        path[t], state = bool(came & 1), int(came >> 1)
    return path


def _measured(measurements: ArrayLike) -> Floats:
    values = np.asarray(measurements, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise DataError("measurements are one finite number per row, or one per row and channel")
    return values


def _states(n_sources: int) -> Floats:
    """All states of the sources as zeros and ones: (2^n_sources, n_sources)."""
    states: Floats = (np.arange(2**n_sources)[:, None] >> np.arange(n_sources) & 1).astype(float)
    return states


def _squares(values: Floats, centres: Floats) -> Floats:
    """Squared distances, (n_rows, n_centres)."""
    cross = values @ centres.T
    squares: Floats = (values**2).sum(axis=1)[:, None] - 2 * cross + (centres**2).sum(axis=1)
    return np.maximum(squares, 0.0)


def _variance(values: Floats, weights: Floats) -> float:
    """The mean variance of the channels."""
    centred = values - weights @ values / weights.sum()
    return float(weights @ (centred**2).mean(axis=1) / weights.sum())

"""One task: one method with settings on one problem of a named network, with its outcome as one flat record."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from time import process_time
from types import FrameType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import BicaError, LimitError, SettingError
from bica.invert.decode import decode
from bica.kernels.bits import packed
from bica.methods import COUNTED, METHODS, method_named, needs_n_sources
from bica.metrics import Comparison, activity_error_ratio, compare_models
from bica.model.files import as_json
from bica.model.fit import Fit, Method
from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture
from bica.progress import AGAIN, is_between_loops
from bica.simulate import EVALUATION, TOPOLOGIES, Problem, bars, random_network, simulate, topology, with_lossy_edges
from bica.version import __version__


@dataclass(frozen=True, slots=True)
class Contender:
    """A method by name, with the settings that differ from its defaults."""

    method: str | None  # None: the true model itself, which shows what decoding alone gets wrong
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain values: they are written beside every result

    def prepared(self, n_sources: int) -> Method | None:
        """The method, with the true number of sources if it needs that."""
        if self.method is None:
            return None
        given: dict[str, Any] = {"n_sources": n_sources} if needs_n_sources(self.method) else {}
        return method_named(self.method, **given, **self.settings)

    def settings_text(self) -> str:
        """The settings as one line of JSON."""
        return json.dumps(as_json(dict(self.settings)), sort_keys=True)

    @property
    def estimates_probability(self) -> bool:
        """Whether its probabilities are estimates, not mere counts of what it covered."""
        return self.method not in COUNTED


CONTENDERS = {
    **{name: Contender(name) for name in METHODS},
    "likelihood sure": Contender("likelihood", {"edges": "sure"}),  # the model of the paper, as the others have it
    "message-passing tuned": Contender("message-passing", {"prior": [0.3, 0.3]}),  # by benchmarks/tune_rivals.py
    "ormachine tuned": Contender("ormachine", {"prior": [0.1, 0.3]}),
    "quartets tuned": Contender("quartets", {"standard_errors": 3.0}),
    **{f"findbica {e:g}": Contender("findbica", {"min_probability": e}) for e in (0.005, 0.01, 0.03, 0.05, 0.08)},
    "truth": Contender(None),
}


def contender(name: str) -> Contender:
    """The contender of this name."""
    if name not in CONTENDERS:
        raise SettingError(f"there is no method {name!r} to compare; choose from {', '.join(map(repr, CONTENDERS))}")
    return CONTENDERS[name]


NetworkMaker = Callable[[np.random.Generator], OrMixture]  # a fixed network, or a new one for each seed


def _fixed(name: str, _: np.random.Generator) -> OrMixture:
    return topology(name)


def _random(n_sensors: int, n_sources: int, rng: np.random.Generator) -> OrMixture:
    return random_network(n_sensors, n_sources, rng=rng)


def _lossy(n_sensors: int, n_sources: int, rng: np.random.Generator) -> OrMixture:
    """Sources of three to five sensors, each of which they reach in half to all of the rows."""
    sure = random_network(n_sensors, n_sources, column_weight=(3, 5), rng=rng)
    return with_lossy_edges(sure, (0.5, 1.0), rng=rng)


def _bars(side: int, _: int, rng: np.random.Generator) -> OrMixture:
    return bars(side, probability=(0.05, 0.3), rng=rng)


def _invertible(n_sensors: int, _: int, rng: np.random.Generator) -> OrMixture:
    """As many sources as sensors, independent modulo 2, so that XORs of sensors can tell them apart."""
    while True:
        mixing = rng.random((n_sensors, n_sensors)) < 0.5
        if _rank_modulo_2(mixing) == n_sensors:
            return OrMixture(mixing, rng.uniform(0.05, 0.4, n_sensors))


def _rank_modulo_2(matrix: NDArray[np.bool_]) -> int:
    """The number of independent rows of bits, where 1 + 1 = 0."""
    rest, rank = list(matrix.copy()), 0
    while rest:
        row = rest.pop()
        if row.any():
            rank += 1
            first = row.argmax()
            rest = [other ^ row if other[first] else other for other in rest]
    return rank


NETWORKS: dict[str, NetworkMaker] = {
    **{f"topology {name}": partial(_fixed, name) for name in TOPOLOGIES},
    "random 10 x 10": partial(_random, 10, 10),
}
FAMILIES: dict[str, tuple[Callable[[int, int, np.random.Generator], OrMixture], str]] = {
    "random": (_random, "random 20 x 30"),  # sensors x sources, two to four sensors each
    "lossy": (_lossy, "lossy 10 x 6"),  # edges that fail now and then; flips are false alarms only
    "bars": (_bars, "bars 4"),  # the lines and columns of a square
    "xor": (_invertible, "xor 8"),  # mixed by XOR, where OR is the wrong model
}
MOST_SENSORS = 10_000  # of a network whose size the user types


def network_named(name: str) -> NetworkMaker:
    """The network of this name: one of the evaluation, or one of a family with its size.

    >>> network_named("bars 3")(np.random.default_rng(0)).mixing.shape
    (9, 6)
    """
    if name in NETWORKS:
        return NETWORKS[name]
    typed = re.fullmatch(r"(\w+) (\d{1,5})(?: x (\d{1,5}))?", name)
    if typed and typed[1] in FAMILIES and (typed[1] in ("random", "lossy")) == (typed[3] is not None):
        make, sizes = FAMILIES[typed[1]][0], (int(typed[2]), int(typed[3] or 0))
        if 1 <= sizes[0] ** (2 if typed[1] == "bars" else 1) <= MOST_SENSORS and sizes[1] <= MOST_SENSORS:
            return partial(make, *sizes)
        raise SettingError(f"network {name!r} has a size that cannot be drawn; up to {MOST_SENSORS} sensors can")
    choice = [*map(repr, NETWORKS), *(repr(example) for _, example in FAMILIES.values())]
    raise SettingError(f"there is no network {name!r}; choose from {', '.join(choice)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A network, how many rows are drawn from it, and how often a cell is flipped."""

    network: str
    n_samples: int
    flip_rate: float

    def draw(self, seed: int) -> Problem:
        """The problem of this seed, the same for every contender.

        >>> Setting(network="topology one", n_samples=50, flip_rate=0.1).draw(0).rows.shape
        (50, 10)
        """
        make, name = network_named(self.network), crc32(self.network.encode())
        rng = np.random.default_rng([seed, name, self.n_samples, round(1e6 * self.flip_rate)])
        miss = 0.0 if self.network.startswith("lossy ") else self.flip_rate
        model = make(rng).with_noise(Noise(self.flip_rate, miss))
        return self.draw_from(model, self.n_samples, rng)

    def draw_from(self, model: OrMixture, n_samples: int, rng: np.random.Generator) -> Problem:
        """Rows of a model of this network: ORs of active sources, or XORs if that is how the network mixes."""
        problem = simulate(model, n_samples, rng)
        if not self.network.startswith("xor "):
            return problem
        odd = (problem.activity.astype(np.int64) @ model.mixing.T) % 2 == 1
        return replace(problem, rows=model.noise.apply(odd, rng))


def topology_settings(
    n_samples: Iterable[int] = EVALUATION.n_samples, flip_rates: Iterable[float] = EVALUATION.flip_rates
) -> list[Setting]:
    """The paper's evaluation: the four topologies at every number of rows and both noise levels.

    >>> len(topology_settings())
    40
    """
    flips = list(flip_rates)
    return [
        Setting(network=f"topology {name}", n_samples=rows, flip_rate=rate)
        for rows in n_samples
        for name in TOPOLOGIES
        for rate in flips
    ]


Record = dict[str, Any]  # plain values that JSON can hold
MEASURES = (
    "hamming_distance",
    "transmission_probability_error",
    "in_degree_error",
    "structure_error",
    "activity_error",
    "activity_error_true_noise",
    "n_found",
    "precision",
    "recall",
    "f1",
    "cpu_seconds",
)
WARM_ROWS = 30  # of a small fit before the clock runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A contender, a setting and a seed."""

    contender: str
    setting: Setting
    seed: int

    def key(self) -> Record:
        """What distinguishes this task from all others, the settings included, so that changed ones are run anew."""
        settings = contender(self.contender).settings_text()
        return {"contender": self.contender, "settings": settings, **asdict(self.setting), "seed": self.seed}

    def perform(self) -> Record:
        """Draw the problem, fit, decode and measure; CPU seconds are those of the fit alone.

        If the contender refuses the problem, ``failure`` holds the reason and there are no measures.

        >>> setting = Setting(network="topology two", n_samples=200, flip_rate=0.0)
        >>> Task(contender="truth", setting=setting, seed=0).perform()["hamming_distance"]
        0.0
        """
        problem = self.setting.draw(self.seed)
        rival = contender(self.contender)
        record = self.key() | {"version": __version__, "failure": None, **dict.fromkeys(MEASURES)}
        fit = timed(self.contender, lambda: _fit(rival, problem, self.seed), record)
        return record if fit is None else record | _measured(rival, fit, problem)


def tasks(contenders: Iterable[str], settings: Iterable[Setting], seeds: Iterable[int]) -> list[Task]:
    """Every contender on every setting with every seed; the seed changes last, so that an early end stays balanced."""
    names, wanted = list(contenders), list(settings)
    return [Task(contender=name, setting=s, seed=seed) for seed in seeds for s in wanted for name in names]


def _fit(rival: Contender, problem: Problem, seed: int) -> Fit:
    method = rival.prepared(problem.model.n_sources)
    if method is None:
        return Fit(problem.model)
    data = PatternCounts.of(problem.rows, sensors=problem.model.sensors)
    return method.fit(data, np.random.default_rng([seed, 1]))


@contextmanager
def cpu_limit(seconds: float | None) -> Iterator[None]:
    """Work inside that takes more CPU time raises ``LimitError``, between two steps of Python; None sets no limit.

    Only the main thread can be interrupted so, and only where the system has timers of CPU time: elsewhere there is no
    limit.

    >>> with cpu_limit(0.05):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
    bica.errors.LimitError: it took more than 0.05 s of CPU time
    """
    if seconds is None or not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_: int, frame: FrameType | None) -> None:
        if not is_between_loops(frame):
            raise LimitError(f"it took more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def timed(name: str, fit: Callable[[], Fit], record: Record, time_limit: float | None = None) -> Fit | None:
    """The fit of a contender; ``record`` is told its CPU seconds or, where it refused and there is none, why."""
    try:
        warm_up(name)
        begin = process_time()
        with cpu_limit(time_limit):
            found = fit()
        record["cpu_seconds"] = process_time() - begin
    except BicaError as error:
        record["failure"] = str(error)
        return None
    return found


@cache
def warm_up(name: str) -> None:
    """Load compiled kernels before the clock runs, once per process."""
    small = Setting(network="topology two", n_samples=WARM_ROWS, flip_rate=0.0).draw(0)
    _fit(contender(name), small, 0)


def _measured(rival: Contender, fit: Fit, problem: Problem) -> Record:
    compared = compare_models(fit.model, problem.model, problem.n_samples)
    measures: Record = compared.as_dict()
    if not rival.estimates_probability:
        measures["transmission_probability_error"] = None
    with_true_noise = fit.model.with_noise(problem.model.noise)
    known = {name: measures[name] for name in (*MEASURES, "n_true", "n_exact", "n_missing") if name in measures}
    return known | {
        "activity_error": _activity_error(fit.model, problem, compared),
        "activity_error_true_noise": _activity_error(with_true_noise, problem, compared),
        "found_flip_rate": float(np.mean(fit.model.noise.rates(fit.model.n_sensors))),
        "n_iter": fit.n_iter,
        "converged": fit.converged,
    }


def _activity_error(model: OrMixture, problem: Problem, compared: Comparison) -> float:
    """The activity error of rows decoded by ``model`` with its own noise; impossible rows count as silent."""
    found = decode(model, packed(np.ascontiguousarray(problem.rows))).activity
    return activity_error_ratio(found, problem.activity, compared.match)

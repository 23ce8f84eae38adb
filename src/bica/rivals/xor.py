"""Sources mixed by XOR instead of OR (Yeredor 2007; AMERICA and MEXICO: Gutch, Gruber, Yeredor and Theis 2012)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from bica.data.patterns import PatternCounts
from bica.errors import BicaWarning, LimitError, SettingError
from bica.kernels.rivals.factors import first_independent, walsh_hadamard
from bica.model.fit import Fit
from bica.model.noise import Noise
from bica.progress import report
from bica.rivals.counted import LEAST_FLIPS, NoiseSetting, check_noise, finished_fit

Search = Literal["auto", "america", "deflation", "mexico"]
Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]
TABLE_SENSORS = 20  # a number for every set of sensors
LEAST_DROP = 1e-9  # nats of entropy that are worth a step


@dataclass(frozen=True, kw_only=True)
class XorICA:
    """Find as many independent sources as sensors, of which every sensor shows the XOR of some.

    Sources are XORs of sensors themselves: those, linearly independent modulo 2, whose entropies add up to least.
    ``"america"`` finds that minimum exactly from a table of all 2^m sets of sensors (up to 20); ``"deflation"`` takes
    one source after another from the same table, and needs more rows; ``"mexico"`` replaces a sensor by its XOR with
    another as long as that lowers its entropy, for any number of sensors, and may get stuck. ``"auto"`` is America
    where it can. There is no noise model. Use it where `bica check` says XOR; on OR mixtures it answers confidently
    and wrongly. The model has the columns of the XOR mixing; ``diagnostics["unmixing"]`` holds the sensors whose XOR
    is each source, and ``"always_even"`` the sets of sensors of which an even number is always on.

    A. Yeredor: ICA in Boolean XOR mixtures, ICA 2007. H. W. Gutch, P. Gruber, A. Yeredor, F. J. Theis: ICA over finite
    fields - Separability and algorithms, Signal Processing 92, 2012.

    >>> sources = np.random.default_rng(0).random((500, 2)) < [0.3, 0.1]
    >>> rows = np.column_stack([sources[:, 0], sources[:, 0] ^ sources[:, 1]])
    >>> found = XorICA().fit(PatternCounts.of(rows), np.random.default_rng(0))
    >>> found.model.mixing.astype(int), found.diagnostics["unmixing"]
    (array([[1, 0],
           [1, 1]]), [['x0'], ['x0', 'x1']])
    """

    search: Search = "auto"
    noise: NoiseSetting = "estimate"

    def __post_init__(self) -> None:
        check_noise(self.noise, "XOR ICA")
        if self.search not in ("auto", "america", "deflation", "mexico"):
            raise SettingError(f"search is 'auto', 'america', 'deflation' or 'mexico', not {self.search!r}")

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Learn from counted rows; diagnostics hold the sum of the entropies, in nats per row, as it fell."""
        data = data.complete("XOR ICA")
        search = self.search
        if search == "auto":
            search = "america" if data.n_sensors <= TABLE_SENSORS else "mexico"
        unmixing, entropies = self._unmixing(data, search)
        probability = data.weights @ parities(data.rows(), unmixing) / data.n_samples
        _warn_of_uniform(data, unmixing, probability)
        noise = self.noise
        if noise == "estimate":
            noise = Noise.flips(LEAST_FLIPS / (data.n_samples * data.n_sensors))
        mixing, on = inverse_modulo_2(unmixing), probability > 0
        order = np.lexsort([*~mixing[::-1], -probability])  # as the model orders its sources
        told = {
            "mixed_by": "xor",
            "objective": entropies,
            "unmixing": [_named(unmixing[k], data) for k in order if on[k]],
            "always_even": [_named(unmixing[k], data) for k in order if not on[k]],
        }
        return finished_fit(
            "xor",
            data,
            mixing,
            probability,
            noise,
            log_likelihood=None,  # of an OR mixture with these columns it would mean nothing
            diagnostics=told,
            n_iter=len(entropies),
        )

    def _unmixing(self, data: PatternCounts, search: Search) -> tuple[Bits, list[float]]:
        """The sets of sensors whose XORs are the sources: (n_sources, n_sensors), and the sums of entropies."""
        if search == "mexico":
            return mexico(data)
        if data.n_sensors > TABLE_SENSORS:
            raise LimitError(
                f"{search} needs a number for each of 2^{data.n_sensors} sets of sensors, and goes up to "
                f"{TABLE_SENSORS} sensors; take search='mexico'"
            )
        balance = data.histogram()
        walsh_hadamard(balance)
        entropy = binary_entropy(balance / data.n_samples)
        words = america(entropy, data.n_sensors) if search == "america" else deflation(entropy, data.n_sensors)
        return (words[:, None] >> np.arange(data.n_sensors)) & 1 == 1, [float(entropy[words].sum())]


def binary_entropy(balance: Floats) -> Floats:
    """The entropy in nats of bits, given by how much likelier they are 0 than 1."""
    entropy: Floats = entr((1 - balance) / 2) + entr((1 + balance) / 2)
    return entropy


def america(entropy: Floats, n_sensors: int) -> NDArray[np.int64]:
    """The bit sets, linearly independent modulo 2, with the least sum of entropies; in a tie the lower number.

    Independent sets are a matroid, so that taking the least one first is optimal.
    """
    order = 1 + np.argsort(entropy[1:], kind="stable")
    chosen = np.zeros(n_sensors, np.int64)
    first_independent(order, np.zeros(n_sensors, np.int64), chosen)
    return chosen


def deflation(entropy: Floats, n_sensors: int) -> NDArray[np.int64]:
    """One source after another: the best XOR of what is left, which is then added to the rest where that helps."""
    left = [1 << sensor for sensor in range(n_sensors)]
    found = []
    while left:
        spanned = np.zeros(1, np.int64)
        for word in left:
            spanned = np.concatenate([spanned, spanned ^ word])
        best = 1 + int(entropy[spanned[1:]].argmin())
        source = int(spanned[best])
        found.append(source)
        part = (best & -best).bit_length() - 1  # one of the words that make up the source
        others = left[:part] + left[part + 1 :]
        left = [min(word, word ^ source, key=lambda w: (entropy[w], w)) for word in others]
    return np.array(found, np.int64)


def mexico(data: PatternCounts) -> tuple[Bits, list[float]]:
    """Replace a mixture by its XOR with another while that lowers its entropy: the largest drop first."""
    n_sensors = data.n_sensors
    signs = 1.0 - 2.0 * data.rows()  # -1 where a mixture is on: XOR is multiplication
    share = data.weights / data.n_samples
    unmixing = np.eye(n_sensors, dtype=bool)
    own = binary_entropy(share @ signs)
    paired = binary_entropy((signs * share[:, None]).T @ signs)
    entropies = [float(own.sum())]
    while True:
        drop = own[:, None] - paired
        np.fill_diagonal(drop, 0.0)
        changed, added = np.unravel_index(int(drop.argmax()), drop.shape)
        if drop[changed, added] <= LEAST_DROP:
            return unmixing, entropies
        signs[:, changed] *= signs[:, added]
        unmixing[changed] ^= unmixing[added]
        own[changed] = paired[changed, added]
        paired[changed] = paired[:, changed] = binary_entropy((share * signs[:, changed]) @ signs)
        entropies.append(float(own.sum()))
        report("steps of mexico", len(entropies) - 1, None)


def parities(rows: Bits, sets: Bits) -> Bits:
    """Whether an odd number of the sensors of each set is on: (n_rows, n_sets)."""
    odd: Bits = (rows.astype(np.int64) @ sets.T.astype(np.int64)) % 2 == 1
    return odd


def inverse_modulo_2(matrix: Bits) -> Bits:
    """The inverse of an invertible matrix of bits, where 1 + 1 = 0.

    >>> inverse_modulo_2(np.array([[1, 0], [1, 1]], dtype=bool)).astype(int)
    array([[1, 0],
           [1, 1]])
    """
    size = len(matrix)
    work = np.hstack([matrix, np.eye(size, dtype=bool)])
    for k in range(size):
        pivot = k + int(work[k:, k].argmax())
        work[[k, pivot]] = work[[pivot, k]]
        others = work[:, k].copy()
        others[k] = False
        work[others] ^= work[k]
    return np.ascontiguousarray(work[:, size:])


def _named(sensors: Bits, data: PatternCounts) -> list[str]:
    return [data.sensors[j] for j in np.flatnonzero(sensors)]


def _warn_of_uniform(data: PatternCounts, unmixing: Bits, probability: Floats) -> None:
    """Warn of sources as even as the most uneven of so many XORs of a uniform one would be by chance."""
    by_chance = np.sqrt(2 * np.log(2) * data.n_sensors / data.n_samples)
    uniform = np.flatnonzero(np.abs(1 - 2 * probability) < by_chance)
    if uniform.size:
        names = ", ".join(_named(unmixing[uniform[0]], data))
        warnings.warn(
            f"as far as these rows show, the XOR of {names} is on in half of all rows; of such a source neither the "
            "column nor its XORs with others are determined",
            BicaWarning,
            stacklevel=3,
        )

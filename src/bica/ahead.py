"""All that fits, decodes and reports compile, compiled ahead: for images, clusters and the wheels of a release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import OutputError
from bica.kernels.compiled import expect as expect_kernels
from bica.kernels.compiled import n_compiled, n_kept
from bica.progress import tracked

if TYPE_CHECKING:
    from bica.estimator import BICA

KERNELS = 75  # that Python calls, about


@dataclass(frozen=True, slots=True)
class Warmup:
    """What a warm-up did."""

    n_compiled: int  # kernels compiled now
    n_ready: int  # kernels that later processes load from disk


def warmup() -> Warmup:
    """Compile all kernels that fits, decodes and reports need, and keep them on disk: once on each machine.

    The first fit after an install compiles what it needs anyway. This is for an image of a container or a node of a
    cluster that shall start at once. Takes up to a minute the first time and a few seconds later.

    >>> from bica import warmup
    >>> warmup().n_compiled  # doctest: +SKIP
    68
    """
    expect_kernels(KERNELS)
    before = n_compiled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tables are made up: what they are like does not matter
        for work in tracked(WORKS, "warming up", len(WORKS)):
            work()
    if n_kept() == 0:
        raise OutputError(
            "nothing that is compiled can be kept: neither the folder of bica nor that of your caches can be written "
            "to; set NUMBA_CACHE_DIR to a folder that can"
        )
    return Warmup(n_compiled() - before, n_kept())


def _rows(
    n_sensors: int, n_rows: int, n_wide: int = 0, flip_rate: float = 0.03, reach: float = 1.0
) -> NDArray[np.bool_]:
    """Rows of a network in which every sensor has several narrow sources or, if ``n_wide`` is given, wide ones."""
    rng, sensors = np.random.default_rng(7), np.arange(n_sensors)
    mixing = np.zeros((n_sensors, n_sensors + n_wide), dtype=bool)
    for step in () if n_wide else (0, 1, 3):
        mixing[(sensors + step) % n_sensors, sensors] = True
    mixing[:, n_sensors:] = rng.random((n_sensors, n_wide)) < 0.5
    active = rng.random((n_rows, 1, mixing.shape[1])) < 0.08
    rows = (active & mixing & (rng.random((n_rows, *mixing.shape)) < reach)).any(axis=2)
    return np.asarray(rows ^ (rng.random(rows.shape) < flip_rate))


def _asked(fitted: BICA, rows: NDArray[Any]) -> BICA:
    """All questions that a fit answers about rows."""
    fitted.transform(rows), fitted.posterior(rows[:5]), fitted.score_samples(rows[:5]), fitted.explain(rows[0])
    return fitted


def _fitted(rows: Any, **settings: Any) -> BICA:
    from bica.estimator import BICA

    return BICA(random_state=0, **settings).fit(rows)


def _small() -> None:
    rows = _rows(8, 400)
    fitted = _asked(_fitted(rows), rows)
    fitted.report(), fitted.bootstrap(2), fitted.score(rows), fitted.transform(np.asfortranarray(rows))


def _doubtful() -> None:
    _fitted(_rows(6, 100, flip_rate=0.1))


def _missing() -> None:
    for n_sensors in 6, 20:
        rows = _rows(n_sensors, 400).astype(float)
        rows[::7, 1] = np.nan
        _asked(_fitted(rows), rows[:20])


def _other_models() -> None:
    _fitted(_rows(6, 1000), noise="per-sensor")
    for flip_rate in 0.0, 0.01:
        _fitted(_rows(6, 1000, flip_rate=flip_rate), method="findbica")
    _fitted(_rows(12, 400), method="findbica")  # too many columns to count all silences at once
    rows = _rows(6, 2000, reach=0.6)
    _asked(_fitted(rows, edges="lossy"), rows[:50])


def _in_time() -> None:
    rows = np.repeat(_rows(6, 60), 5, axis=0)
    _fitted(rows, temporal=True).transform(rows)


def _blocks() -> None:
    rows = _rows(20, 1500)
    _asked(_fitted(rows), rows[:50])


def _many() -> None:
    rows = _rows(70, 1500)
    _asked(_fitted(rows), rows[:20])


def _wide() -> None:
    rows = _rows(70, 300, n_wide=4, flip_rate=0.01)
    _asked(_fitted(rows), rows[:20])


WORKS: tuple[Callable[[], None], ...] = (_small, _doubtful, _missing, _other_models, _in_time, _blocks, _many, _wide)

"""The decorator of every kernel: compiled once, kept on disk, free of the interpreter lock; and the news of it.

The first run after an install compiles what it needs, one kernel after the other. A listener of ``bica.progress`` hears
of each; where there is none and it takes longer than ``PATIENCE``, one line goes to the log ``bica``.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, cast

from bica.kernels.compiler import Kernel, before_compiling, is_switched_off, ship
from bica.progress import COMPILING, WAIT, report_anywhere

Loop = TypeVar("Loop", bound=Callable[..., Any])
PATIENCE = 2.0  # seconds
A_FIT, A_WIDE_FIT = 20, 26  # kernels that Python calls, about: up to 16 columns, and more (benchmarks/bench_compile.py)
_kernels: list[Any] = []


class _News:
    """What is known about the compilations of this process."""

    n_expected = A_FIT  # kernels that the present work needs, about
    n_begun = 0
    begun: float | None = None  # when the first one began
    logged = False


def compiled(function: Loop) -> Loop:
    """Compile ``function`` on its first call, or load what an earlier run compiled."""
    if is_switched_off():
        return function
    kernel = Kernel(function)
    kernel.is_kept = True
    _kernels.append(kernel)
    return cast(Loop, kernel)


def expect(n_kernels: int) -> None:
    """Say about how many kernels the work to come needs, those that are loaded already included."""
    _News.n_expected = max(_News.n_expected, n_kernels)


def n_compiled() -> int:
    """How many kernels this process has compiled for calls from Python."""
    return sum(len(kernel.stats.cache_misses) for kernel in _kernels)


def n_kept() -> int:
    """How many kernels of this process are on disk for later ones."""
    used = (kernel.stats for kernel in _kernels if kernel.signatures)
    return sum(stats.cache_path is not None or bool(stats.cache_hits) for stats in used)


def ship_all(folder: Path) -> None:
    """Write every kernel that this process compiled into ``folder``, for a wheel."""
    ship(_kernels, folder)


def announce() -> None:
    """Say that one more kernel is being compiled."""
    _News.n_begun += 1
    _News.begun = monotonic() if _News.begun is None else _News.begun
    n_loaded = sum(bool(kernel.stats.cache_hits) for kernel in _kernels)
    total = max(_News.n_begun, _News.n_expected - n_loaded)
    heard = report_anywhere(COMPILING, _News.n_begun, total)
    if not heard and not _News.logged and monotonic() > _News.begun + PATIENCE:
        _News.logged = True
        logging.getLogger("bica").warning(WAIT)


before_compiling(lambda: announce())  # looked up when called

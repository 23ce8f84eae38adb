"""The decorator of every kernel: compiled once, kept on disk, free of the interpreter lock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_kernels: list[Any] = []


def compiled(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call, or load what an earlier run compiled."""
    try:
        kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        kernel = njit(nogil=True, error_model="numpy")(function)
    _kernels.append(kernel)
    return cast(Kernel, kernel)


def compiled_before() -> bool:
    """Whether an earlier run left its kernels on disk, so that this one starts at once."""
    return any(kernel.stats.cache_path and any(Path(kernel.stats.cache_path).glob("*.nbi")) for kernel in _kernels)

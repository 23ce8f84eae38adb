"""The decorator of every kernel: compiled once, kept on disk, free of the interpreter lock."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from bica.kernels.compiler import Kernel

Loop = TypeVar("Loop", bound=Callable[..., Any])
_kernels: list[Any] = []


def compiled(function: Loop) -> Loop:
    """Compile ``function`` on its first call, or load what an earlier run compiled."""
    kernel = Kernel(function)
    with suppress(RuntimeError):  # neither the package's folder nor the user's cache can be written
        kernel.enable_caching()
    _kernels.append(kernel)
    return cast(Loop, kernel)


def compiled_before() -> bool:
    """Whether an earlier run left its kernels on disk, so that this one starts at once."""
    return any(kernel.stats.cache_path and any(Path(kernel.stats.cache_path).glob("*.nbi")) for kernel in _kernels)

"""The same work on many parts, in threads: the parts do not depend on the number of threads, so neither do results."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Part = TypeVar("Part")
Result = TypeVar("Result")
ROWS_A_PART = 1024


def in_threads(task: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int) -> list[Result]:
    """``task`` of every part, in order; it should spend its time outside the interpreter.

    >>> in_threads(len, ["a", "bc"], 2)
    [1, 2]
    """
    if n_jobs == 1 or len(parts) < 2:
        return [task(part) for part in parts]
    pool = ThreadPoolExecutor(n_jobs)
    try:
        return [future.result() for future in [pool.submit(task, part) for part in parts]]
    finally:
        pool.shutdown(cancel_futures=True)


def ranges(rows: NDArray[np.int64], size: int = ROWS_A_PART) -> list[NDArray[np.int64]]:
    """The rows in parts of at most ``size``; one empty part if there are none.

    >>> [part.tolist() for part in ranges(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return [rows[begin : begin + size] for begin in range(0, max(1, rows.size), size)]

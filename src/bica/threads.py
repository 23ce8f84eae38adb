"""The same work on many parts, in threads: kernels run free of the interpreter lock, so that threads use every core."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


@cache
def n_cores() -> int:
    """How many threads use the whole machine; asking the system takes longer than a small fit can wait."""
    return os.cpu_count() or 1


def in_threads(task: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int | None = None) -> Iterator[Result]:
    """``task`` of every part, in order, so that the number of threads changes nothing; None: one thread a core.

    Ctrl-C waits only for the parts that have begun.

    >>> list(in_threads(len, ["a", "bc"]))
    [1, 2]
    """
    n_threads = min(len(parts), n_cores() if n_jobs is None else n_jobs)
    if n_threads < 2:
        yield from map(task, parts)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        for future in [pool.submit(task, part) for part in parts]:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)

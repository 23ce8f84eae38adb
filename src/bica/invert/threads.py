"""Pieces of work side by side: kernels run free of the interpreter lock, so that threads use every core."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from bica.progress import tracked


def in_threads(work: Callable[[slice], None], pieces: Sequence[slice], what: str) -> None:
    """Do all pieces, in any order; Ctrl-C waits only for those that have begun.

    >>> done = [False] * 4
    >>> def work(piece):
    ...     done[piece] = [True] * 2
    >>> in_threads(work, [slice(0, 2), slice(2, 4)], "marking")
    >>> done
    [True, True, True, True]
    """
    n_threads = min(len(pieces), os.cpu_count() or 1)
    if n_threads < 2:
        for piece in tracked(pieces, what, len(pieces)):
            work(piece)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for done in tracked(as_completed([pool.submit(work, piece) for piece in pieces]), what, len(pieces)):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

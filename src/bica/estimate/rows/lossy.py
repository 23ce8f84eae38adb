"""Learning lossy sources of many sensors: rounds of births, sweeps, splits and merges, by Gibbs-EM over the rows."""

from __future__ import annotations

import numpy as np

from bica.estimate.rows.lossy_moves import births, merges, splits
from bica.estimate.rows.lossy_state import LossyState, LossyTable, burnt_in, sweeps
from bica.estimate.rows.pool import RowTable
from bica.progress import report


def chain(table: RowTable, rng, n_jobs=1, first_rows=12000, rounds=20, verbose=False) -> LossyState:
    import time
    t0=time.process_time()
    if table.n_samples > 2 * first_rows:
        a = chain(table.sample(first_rows, rng), rng, n_jobs, first_rows, rounds, verbose)
        s = LossyState.asleep(LossyTable.of(table, n_jobs), a.probability, a.reach, a.leak)
        s = burnt_in(s, 4, rng)
        s = sweeps(s, 3, rng).pruned(.8)
        n = s.size
        s = births(s, first=False)
        s = splits(s)
        if s.size != n: s = sweeps(s, 4, rng).pruned(.8)
        s = merges(s)
        s = sweeps(s, 3, rng).pruned(1.)
        return sweeps(s, 6, rng, remembered=1., opens=False)
    s = LossyState.empty(LossyTable.of(table, n_jobs))
    best, quiet, settled = -np.inf, 0, False
    for r in range(rounds):
        n = s.size
        s = births(s, first=r == 0)
        t1=time.process_time()-t0
        b = s.size - n
        if b:
            s = sweeps(s, 5, rng).pruned(.5)
            s = sweeps(s, 3, rng).pruned(.8)
        t2=time.process_time()-t0
        n = s.size
        s = splits(s)
        d = s.size - n
        t3=time.process_time()-t0
        if d: s = sweeps(s, 5, rng).pruned(.8)
        t4=time.process_time()-t0
        n = s
        s = merges(s)
        g = s is not n
        t5=time.process_time()-t0
        if g: s = sweeps(s, 3, rng).pruned(.8)
        if verbose: print("round", r, "born", b, "split", d, "regrouped", g, "n", s.size, "edges", (s.reach>0).sum(), "score", round(s.score), "t", *[round(x,2) for x in (t1,t2,t3,t4,t5,time.process_time()-t0)], flush=True)
        if not (b or d or g):
            if settled: break
            s = sweeps(s, 8, rng).pruned(1.); settled = True
        else: settled = False
        quiet = quiet + 1 if s.score < best + 1 else 0
        best = max(best, s.score)
        if quiet >= 3: break
    s = sweeps(s, 8, rng).pruned(1.)
    s = merges(s)
    s = sweeps(s, 4, rng).pruned(1.)
    s = sweeps(s, 10, rng, remembered=1., opens=False)
    if verbose: print("end", s.size, round(time.process_time()-t0,2))
    return s

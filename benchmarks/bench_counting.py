"""Counting the rows of a large boolean table: against DuckDB's GROUP BY and against pandas' groupby.

python benchmarks/bench_counting.py > benchmarks/results/counting.md
"""

import time
from collections.abc import Callable

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts

N_SAMPLES, N_SENSORS, N_SOURCES = 10_000_000, 20, 20


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The least of several runs: what the work takes when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def or_mixture_rows(rng: np.random.Generator) -> NDArray[np.bool_]:
    """Rows of an OR mixture: each source reaches 2 to 4 sensors and is on in 5 to 30 % of the rows."""
    mixing = np.zeros((N_SENSORS, N_SOURCES), np.float32)
    for source in range(N_SOURCES):
        mixing[rng.choice(N_SENSORS, rng.integers(2, 5), replace=False), source] = 1
    probability = rng.uniform(0.05, 0.3, N_SOURCES)
    rows = np.empty((N_SAMPLES, N_SENSORS), bool)
    for part in np.array_split(rows, 100):
        part[:] = (rng.random((len(part), N_SOURCES)) < probability).astype(np.float32) @ mixing.T > 0
    return rows


def main() -> None:
    rows = or_mixture_rows(np.random.default_rng(0))
    frame = pd.DataFrame(rows.copy(order="F"), columns=[f"x{i}" for i in range(N_SENSORS)])
    polars = pl.DataFrame(frame)
    engine = duckdb.connect()
    engine.execute("CREATE TABLE observations AS SELECT * FROM frame")
    for table in (rows, frame, polars):
        PatternCounts.of(table[:1000])  # compile

    group_by = seconds(lambda: engine.execute("SELECT *, count(*) FROM observations GROUP BY ALL").fetchnumpy())
    groupby = seconds(lambda: frame.groupby(list(frame.columns)).size())
    print("# Counting 10 million rows of 20 booleans\n\n    python benchmarks/bench_counting.py\n")
    print("Best of three runs each, on the same rows of an OR mixture, in one process.\n")
    print("| work | seconds | against DuckDB (wanted: ≥ 1 ×) | against pandas (wanted: ≥ 5 ×) |")
    print("| --- | --- | --- | --- |")
    for name, table in {"NumPy array": rows, "pandas frame": frame, "Polars frame": polars}.items():
        ours = seconds(lambda table=table: PatternCounts.of(table))
        print(f"| `PatternCounts.of`, {name} | {ours:.3f} | {group_by / ours:.1f} × faster | {groupby / ours:.0f} × |")
    print(f"| DuckDB `GROUP BY ALL`, table in its memory, all threads | {group_by:.3f} | | |")
    print(f"| pandas `groupby(all columns).size()` | {groupby:.3f} | | |")
    counts = PatternCounts.of(rows)
    same = np.sort(counts.weights) == np.sort(frame.groupby(list(frame.columns)).size().to_numpy())
    print(f"\n{len(counts.weights)} distinct rows; the counts of pandas are the same: {bool(same.all())}.")


if __name__ == "__main__":
    main()

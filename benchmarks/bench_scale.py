"""Large tables from files: CPU seconds and peak memory of `bica fit`, beside DuckDB counting the same columns.

    python benchmarks/bench_scale.py [--keep] FOLDER 1e6x200 5e6x200 ...

Tables are drawn in FOLDER and removed again, unless they are to be kept for the next run: Boolean Parquet, three
sources per four sensors, each behind 2 to 4 sensors and on in 1 to 5 % of the rows, 1 % of the cells flipped. A size
may end in `:dask` or `:spark`, as in 1e6x200:dask, in `:wide` for one source per five sensors, each behind 10 to 25 of
them, or in `:decode` to decode the folder into another with the model of its first file.
CPU seconds are those of the whole process with its children; the kernels are compiled before. Prints one line of a
Markdown table each.
"""

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bica import load

ROWS_A_PIECE = 50_000
CELLS_A_FILE = 50_000_000
SEED = 19
RAW = """
import duckdb, sys
names = [row[0] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{sys.argv[1]}/*.parquet'").fetchall()]
sums = ", ".join(f'sum("{name}"::INT)' for name in names)
duckdb.sql(f"SELECT count(*), {sums} FROM '{sys.argv[1]}/*.parquet'").fetchall()
"""


def draw(folder: Path, n_rows: int, n_sensors: int, *, wide: bool = False) -> set[tuple[int, ...]]:
    """Write the files; return the sensors of each source."""
    rng = np.random.default_rng(SEED)
    columns, probability = _network(n_sensors, wide, rng)
    if folder.exists():
        return set(columns)
    ends = np.linspace(0, n_rows, max(1, n_rows * n_sensors // CELLS_A_FILE) + 1).astype(int)
    unfinished = folder.with_suffix(".part")
    unfinished.mkdir(parents=True)
    schema = pa.schema([(f"s{i:04d}", pa.bool_()) for i in range(n_sensors)])
    for number, (begin, end) in enumerate(pairwise(ends)):
        with pq.ParquetWriter(unfinished / f"part{number:04d}.parquet", schema) as writer:
            for first in range(begin, end, ROWS_A_PIECE):
                writer.write_table(_piece(columns, probability, min(ROWS_A_PIECE, end - first), n_sensors, rng))
    unfinished.rename(folder)
    return set(columns)


def _network(n_sensors: int, wide: bool, rng: np.random.Generator) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """The sensors of each source, and how often it is on."""
    sources: set[tuple[int, ...]] = set()
    share, fewest, most = (0.2, 10, 25) if wide else (0.74, 2, 4)
    while len(sources) < int(share * n_sensors):
        sources.add(tuple(sorted(rng.choice(n_sensors, rng.integers(fewest, most + 1), replace=False).tolist())))
    columns = sorted(sources)
    return columns, rng.uniform(0.01, 0.05, len(columns))


def _piece(columns, probability, n_rows: int, n_sensors: int, rng: np.random.Generator) -> pa.Table:
    cells = np.zeros((n_sensors, n_rows), dtype=bool)
    for column, p in zip(columns, probability, strict=True):
        cells[list(column)] |= rng.random(n_rows, dtype=np.float32) < p
    cells.ravel()[rng.integers(0, cells.size, rng.binomial(cells.size, 0.01))] ^= True
    return pa.table({f"s{i:04d}": column for i, column in enumerate(cells)})


def run(*command: str) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a command and its children, each in a process of its own."""
    code = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(done.returncode)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    cpu, megabytes = done.stdout.split()
    return float(cpu), float(megabytes)


def measure(folder: Path, size: str, keep: bool) -> str:
    """One line of the table."""
    shape, _, engine = size.partition(":")
    n_rows, n_sensors = (int(float(number)) for number in shape.split("x"))
    table, model = folder / f"table-{shape}{'-wide' * (engine == 'wide')}", folder / f"{size.replace(':', '-')}.json"
    truth = draw(table, n_rows, n_sensors, wide=engine == "wide")
    try:
        if engine == "decode":
            return f"| {shape} | decoding a folder | {_decoding(table, model, n_rows)} |"
        raw, _ = run(sys.executable, "-c", RAW, str(table))
        options = ["--engine", engine] if engine in ("dask", "spark") else []
        cpu, megabytes = run(sys.executable, "-m", "bica", "fit", str(table), "-o", str(model), "--force", *options)
        found = {tuple(np.flatnonzero(column).tolist()) for column in load(model).mixing.T}
    finally:
        if not keep:
            shutil.rmtree(table)
    right = f"{len(found & truth)} of {len(truth)}, {len(found - truth)} spurious"
    return f"| {shape} | {engine or 'files'} | {cpu:.1f} | {raw:.1f} | {cpu / raw:.1f} | {megabytes:.0f} | {right} |"


def _decoding(table: Path, model: Path, n_rows: int) -> str:
    """How long it takes to decode a folder into a folder, with the model that is learned from its first file."""
    answers = table.with_suffix(".answers")
    first = str(min(table.iterdir()))
    try:
        run(sys.executable, "-m", "bica", "fit", first, "-o", str(model), "--force")
        cpu, megabytes = run(sys.executable, "-m", "bica", "decode", str(model), str(table), "-o", f"{answers}/")
    finally:
        shutil.rmtree(answers, ignore_errors=True)
    return f"{cpu:.1f} | | | {megabytes:.0f} | {n_rows / cpu:.3g} rows per CPU second"


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--keep"]
    place = Path(words[0])
    print("| rows x sensors | engine | CPU s | raw CPU s | ratio | peak MB of one process | sources |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for given in words[1:]:
        print(measure(place, given, len(words) < len(sys.argv[1:])), flush=True)

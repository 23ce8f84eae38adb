"""``bica slots`` on ten million events and a million packets: speed, and the memory of the process.

python benchmarks/bench_slots.py > benchmarks/results/slots.md
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

N_EVENTS, N_LINES, N_PACKETS, N_SENSORS, REPEATS = 10_000_000, 1_000_000, 1_000_000, 21, 3
CHANNELS = (2412, 2437, 2462)
EVENTS = f"""
SELECT make_timestamp(1700000000000000 + i * 2160 + floor(random() * 5000)::BIGINT) AS time,
       'sniffer' || floor(random() * {N_SENSORS})::INTEGER AS sensor,
       [1, 6, 11][1 + floor(random() * 3)::INTEGER] AS channel
FROM range({N_EVENTS}) AS t(i)
"""


def write_events(folder: Path) -> dict[str, Path]:
    """Six hours of three channels and 21 sniffers, times slightly out of order."""
    files = {"Parquet": folder / "events.parquet", "CSV": folder / "events.csv", "JSON lines": folder / "events.jsonl"}
    with duckdb.connect() as engine:
        engine.execute("SELECT setseed(0.5)")
        engine.execute(f"COPY ({EVENTS}) TO '{files['Parquet']}' (FORMAT parquet)")
        engine.execute(f"COPY (FROM '{files['Parquet']}') TO '{files['CSV']}' (FORMAT csv)")
        engine.execute(f"COPY (FROM '{files['Parquet']}' LIMIT {N_LINES}) TO '{files['JSON lines']}' (FORMAT json)")
    return files


def write_capture(path: Path) -> None:
    """Radiotap headers with channel and antenna, frames of 200 bytes."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 127))
        for i, channel in enumerate(rng.integers(0, 3, N_PACKETS).tolist()):
            radiotap = struct.pack("<BBHIBxHHbB", 0, 0, 16, 0x82A, 0, CHANNELS[channel], 0x80, -50, 0)
            head = struct.pack("<IIII", 1_700_000_000 + i // 46, i % 46 * 20000, 216, 216)
            file.write(head + radiotap + bytes(200))


def run(source: Path, n_events: int, folder: Path) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of the processors, and the peak of the memory in GB, of one whole command."""
    command = [sys.executable, "-m", "bica", "slots", str(source), "--slot", "1s", "--force", "--json"]
    start = time.perf_counter()
    with (folder / "summary.json").open("wb") as summary:
        process = subprocess.Popen([*command, "-o", str(folder / "slots.parquet")], stdout=summary)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    assert status == 0
    assert json.loads((folder / "summary.json").read_text())["n_used"] == n_events
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def line(name: str, n: int, wanted: float | None, source: Path, folder: Path) -> str:
    runs = [run(source, n, folder) for _ in range(REPEATS)]
    clock, processors, memory = (min(column) for column in zip(*runs, strict=True))
    asked = "" if wanted is None else f"≥ {wanted:.0e} a second"
    return f"| {name} | {clock:.1f} | {processors:.1f} | {n / clock / 1e6:.2f} million | {asked} | {memory:.2f} GB |"


def main() -> None:
    print("# From events to slots\n\n    python benchmarks/bench_slots.py\n")
    print(
        f"{N_EVENTS} events of {N_SENSORS} sniffers on three channels, six hours in slots of one second, and a capture"
    )
    print(f"of {N_PACKETS} packets. Each line is the whole command, from the start of the interpreter to three Parquet")
    print(f"tables; best of {REPEATS} runs. Wanted: ten million events in under 2 GB.\n")
    print("| source | seconds | processor seconds | a second | wanted | memory |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_events(folder)
        write_capture(folder / "roof.pcap")
        print(line("Parquet", N_EVENTS, 1e6, files["Parquet"], folder), flush=True)
        print(line("CSV", N_EVENTS, None, files["CSV"], folder), flush=True)
        print(line("JSON lines, the first million", N_LINES, None, files["JSON lines"], folder), flush=True)
        print(line("pcap", N_PACKETS, 1e5, folder / "roof.pcap", folder), flush=True)
    print(f"\nThe machine had {os.cpu_count()} processors and a load of {os.getloadavg()[0]:.1f} at the end.")


if __name__ == "__main__":
    main()
